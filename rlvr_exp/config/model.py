"""Options of the `model` group: which policy answers and how it is loaded."""

from dataclasses import dataclass, field

from rlvr_exp.config.adapter import Adapter, adapter_problems
from rlvr_exp.config.architecture import Architecture
from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Model:
    """A causal language model with its tokenizer."""

    path: str = ""
    """Folder of a local checkpoint, full or an adapter's; empty: the hub name, or the embedded model."""
    name: str = ""
    """Hub name, used when no path is given."""
    embedded: str = option("tiny", choices=("tiny", "tiny_dafny"))
    """The model of this package that is used when neither is given: tiny (grid puzzles) or tiny_dafny (both Dafny roles)."""
    dtype: str = option("auto", choices=("auto", "float32", "bfloat16"))
    """Type of the weights in memory; auto: as stored."""
    quantization: str = option("none", choices=("none", "4bit", "8bit"))
    """Weights held in fewer bits by bitsandbytes: 4bit (NF4, QLoRA) or 8bit (LLM.int8()); training then needs an adapter."""
    adapter: Adapter = field(default_factory=Adapter)
    """A low-rank adapter."""
    freeze: list[str] = field(default_factory=list)
    """Patterns of parameter names that are not trained, such as model.layers.0.*; a pattern without a match is
    rejected."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass in place of keeping them: less memory, about a third more time."""
    device_map: str = option("", choices=("", "auto"))
    """auto: spread the layers over the devices; empty: one device."""
    attention: str = option("auto", choices=("auto", "eager", "sdpa"))
    """Attention implementation; auto: the library's choice. Groups share their prompt through 4-D masks, which these take."""
    chat_template: str = option("auto", choices=("auto", "always", "never"))
    """Word prompts as chat; auto: where the tokenizer has a template."""
    thinking: bool = False
    """Let a chat template that supports it open with thinking; that needs a larger max_completion_tokens."""
    architecture: Architecture = field(default_factory=Architecture)
    """Shape of the decoder, for the memory table of the dry plan; a local checkpoint's own config.json comes first."""
    from_scratch: bool = False
    """Build the architecture with random weights in place of loading them."""
    max_prompt_tokens: int = option(1024, low=1)
    """Longest prompt taken; a longer one is never cut: left out of training, a failure in evaluation."""
    max_completion_tokens: int = option(1024, low=1)
    """Longest completion sampled, in training and in evaluation; a longer one fails as truncated."""
    trust_remote_code: bool = False
    """Run Python code that comes with a checkpoint."""

    @property
    def is_embedded(self) -> bool:
        return not self.path and not self.name

    def problems(self) -> list[InputProblem]:
        found = list(adapter_problems(self))
        if self.from_scratch and not self.is_embedded:
            found.append(
                InputProblem(
                    "from_scratch", "only an embedded model is built from scratch", remedy="drop it, or model=tiny"
                )
            )
        return found
