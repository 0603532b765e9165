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
class Layout:
    """One training process and what it is asked to do. Lengths are the longest allowed, in tokens."""

    shape: Architecture
    dtype: str
    prompt: int
    completion: int
    group: int
    micro_groups: int
    """Groups of one forward and backward pass; each is one packed row."""
    sampled_groups: int
    """Groups that one device decodes at once."""
    quantization: str = ""
    """"", "8bit" or "4bit"."""
    adapter: Adapter | None = None
    optimizer: str = "AdamW"
    momentum: bool = True
    """SGD and Adafactor keep a first moment."""
    reference: bool = False
    """A second copy of the model is held for the KL penalty."""
    checkpointing: bool = False
    strategy: str = "single"
    processes: int = 1
    gather: bool = True
    """Under ZeRO-3 the whole model is gathered for sampling."""
    offload: bool = False
    trains: bool = True
    accumulates: bool = True
    """A step has several passes, so that gradients lie there while the next one runs."""

    @property
    def width(self) -> int:
        return WIDTH[self.dtype]

    @property
    def partitions_weights(self) -> bool:
        return self.strategy.startswith("zero3")

    @property
    def partitions_updates(self) -> bool:
        """Gradients and optimizer states are spread over the processes."""
        return self.strategy.startswith("zero")

    @property
    def row(self) -> int:
        """Tokens of one packed row: the prompt but its last token, then G segments."""
        return self.prompt - 1 + self.group * self.completion

    @property
    def tokens(self) -> int:
        """Tokens of one forward and backward pass."""
        return self.micro_groups * self.row

    @property
    def scored(self) -> int:
        """Positions of a pass whose log-probability is asked for."""
        return self.micro_groups * self.group * self.completion
