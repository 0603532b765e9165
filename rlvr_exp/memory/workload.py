"""The inputs that determine the memory of a device: a shape, a plan for it, and lengths. Read from a configuration,
pure otherwise."""

from dataclasses import dataclass, replace

from rlvr_exp.config.architecture import Architecture
from rlvr_exp.config.parallel import derive

GIB = 2**30
WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of one number."""


@dataclass(frozen=True)
class Adapter:
    """A low-rank adapter; PEFT keeps it in float32 whatever the type of the base."""

    rank: int
    targets: tuple[str, ...]
    """Names of the matrices that are adapted."""
    dora: bool = False


@dataclass(frozen=True)
class SamplingBatch:
    """Groups of completions that a device samples at the same time, each with its prompt held once."""

    groups: int
    size: int
    """Completions of a group."""
    prompt: int
    completion: int
    """The longest allowed, in tokens."""
    options: tuple[tuple[str, int], ...] = ()
    """Name and value of each option that bounds the completions sampled at once."""

    @property
    def tokens(self) -> int:
        """Columns of the cache."""
        return self.groups * (self.prompt + self.size * self.completion)


@dataclass(frozen=True)
class Colocated:
    """vLLM in the process that trains."""

    dtype: str
    """Of its weights."""
    limit: float
    """Bytes that it may take while it is awake: its share of the device."""
    longest: int
    """Tokens of the longest prompt with its completion."""
    models: int
    """Different shapes of the roles' models. Roles of one shape share vLLM's model."""


@dataclass(frozen=True)
class Workload:
    """A training process and its work. Lengths are the longest allowed, in tokens."""

    shape: Architecture
    dtype: str
    prompt: int
    completion: int
    group: int
    limit: int
    """Most tokens of a forward and backward pass."""
    share: int
    """Groups that a process trains on in a step."""
    sampling_batch: SamplingBatch
    """The larger of the batches that training and evaluation sample at the same time."""
    cpu: bool = False
    """The process computes on a CPU and holds everything in the memory of the machine."""
    stock: bool = False
    """trl.GRPOTrainer trains, with the library's layers and head."""
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
    average: bool = False
    """A moving average of the trained weights teaches (SDPO)."""
    teacher: "Workload | None" = None
    """The weights of another model that teaches."""
    value_network: bool = False
    """PPO's value network is a decoder of its own, trained as the policy is."""
    checkpointing: bool = False
    filtered: bool = False
    """Completions are drawn with top-k, top-p or min-p."""
    strategy: str = "single"
    processes: int = 1
    bucket: float = 5e8
    """Numbers that ZeRO sends in a single message (reduce_bucket_size)."""
    live: float = 1e9
    """Numbers that ZeRO-3 holds gathered at most while layers run (stage3_max_live_parameters)."""
    offload: bool = False
    trains: bool = True
    vllm: Colocated | None = None
    """It samples in place of our own sampler."""
    served: bool = False
    """A server samples, on devices of its own."""
    roles: int = 1
    """Number of policies, each with an optimizer: adapters on the same base, or models."""
    examples: int = 0
    """Tokens of all examples of imitation; 0 on a GPU, since the machine's memory holds them."""

    @property
    def of_stock(self) -> "Workload":
        """The same step by trl.GRPOTrainer (benchmark=training): each completion is a row with its prompt."""
        rows, longest = self.share * self.group, self.prompt + self.completion
        size = derive(rows, longest, self.limit).micro_batch
        return replace(self, stock=True, group=1, share=rows, limit=size * longest)

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
        """Gradients and optimizer states are sharded over the processes."""
        return self.strategy.startswith("zero")

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Groups of the fullest pass: tokens of each prompt, and completions of the longest length that share it."""
        together = min(self.group, max(1, (self.limit - self.prompt) // self.completion))
        full = self.prompt + together * self.completion
        count = max(1, min(self.share, self.limit // full))
        rest = self.limit - count * full
        more = count < self.share or together < self.group
        tail = [(rest - self.completion, 1)] if more and rest > self.completion + 1 else []
        return [(self.prompt, together)] * count + tail

    @property
    def accumulates(self) -> bool:
        """A step has several passes, so that gradients are in memory while the next pass runs."""
        return self.scored < self.share * self.group * self.completion

    @property
    def tokens(self) -> int:
        """Tokens of a full pass: each prompt except its last token, then its completions."""
        return sum(prompt - 1 + count * self.completion for prompt, count in self.groups)

    @property
    def scored(self) -> int:
        """Positions of a full pass whose log-probability is computed."""
        return sum(count * self.completion for _, count in self.groups)
