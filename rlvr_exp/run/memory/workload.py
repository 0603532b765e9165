"""What decides the memory of a device: a shape, a plan for it, and lengths. Read from a configuration, pure otherwise."""

from dataclasses import dataclass

from rlvr_exp.config.architecture import Architecture

GIB = 2**30
WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of one number."""


@dataclass(frozen=True)
class Adapter:
    """A low-rank adapter; PEFT keeps it in float32 whatever the base is stored in."""

    rank: int
    targets: tuple[str, ...]
    """Names of the matrices that have one."""
    dora: bool = False


@dataclass(frozen=True)
class SamplingBatch:
    """What one device samples at once: groups of completions, each with its prompt held once."""

    groups: int
    size: int
    """Completions of a group."""
    prompt: int
    completion: int
    """The longest allowed, in tokens."""

    @property
    def tokens(self) -> int:
        """Columns of the cache."""
        return self.groups * (self.prompt + self.size * self.completion)


@dataclass(frozen=True)
class Workload:
    """One training process and what it is asked to do. Lengths are the longest allowed, in tokens."""

    shape: Architecture
    dtype: str
    prompt: int
    completion: int
    group: int
    limit: int
    """Tokens of one forward and backward pass at most."""
    share: int
    """Groups that one process learns from in a step."""
    sampling_batch: SamplingBatch
    """The more of what training and evaluation sample at once."""
    quantization: str = ""
    """"", "8bit" or "4bit"."""
    adapter: Adapter | None = None
    optimizer: str = "AdamW"
    momentum: bool = True
    """SGD and Adafactor keep a first moment."""
    frozen: int = 0
    """Numbers that `model.freeze` leaves out of training."""
    reference: bool = False
    """A second copy of the model is held for the KL penalty."""
    value_network: bool = False
    """PPO's value has a decoder of its own, trained as the policy's is."""
    checkpointing: bool = False
    strategy: str = "single"
    processes: int = 1
    bucket: float = 5e8
    """Numbers that ZeRO sends at once (reduce_bucket_size)."""
    live: float = 1e9
    """Numbers that ZeRO-3 holds gathered at most while layers run (stage3_max_live_parameters)."""
    offload: bool = False
    trains: bool = True
    roles: int = 1
    """Policies side by side, each with an optimizer: adapters on one base, or models."""

    @property
    def models(self) -> int:
        return 1 if self.adapter else self.roles

    @property
    def width(self) -> int:
        return WIDTH[self.dtype]

    @property
    def decoders(self) -> int:
        """Networks that are trained."""
        return 2 if self.value_network else 1

    @property
    def partitions_weights(self) -> bool:
        return self.strategy.startswith("zero3")

    @property
    def partitions_updates(self) -> bool:
        """Gradients and optimizer states are spread over the processes."""
        return self.strategy.startswith("zero")

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Of a pass as full as any can be: tokens of each prompt, and completions of the longest length that share it."""
        together = min(self.group, max(1, (self.limit - self.prompt) // self.completion))
        whole = self.prompt + together * self.completion
        count = max(1, min(self.share, self.limit // whole))
        rest = self.limit - count * whole
        more = count < self.share or together < self.group
        tail = [(rest - self.completion, 1)] if more and rest > self.completion + 1 else []
        return [(self.prompt, together)] * count + tail

    @property
    def accumulates(self) -> bool:
        """A step has several passes, so that gradients lie there while the next one runs."""
        return self.scored < self.share * self.group * self.completion

    @property
    def tokens(self) -> int:
        """Of a full pass: each prompt but its last token, then its completions."""
        return sum(prompt - 1 + count * self.completion for prompt, count in self.groups)

    @property
    def scored(self) -> int:
        """Positions of a full pass whose log-probability is asked for."""
        return sum(count * self.completion for _, count in self.groups)
