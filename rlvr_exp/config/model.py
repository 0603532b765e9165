"""Options of the `model` group: which policy answers and how it is loaded."""

from dataclasses import dataclass

from rlvr_exp.config.options import option
from rlvr_exp.core.errors import Problem


@dataclass
class Model:
    """A causal language model with its tokenizer."""

    path: str = ""
    """Folder of a local checkpoint; empty: the hub name, or the embedded model where there is none."""
    name: str = ""
    """Hub name, used when no path is given."""
    dtype: str = option("auto", choices=("auto", "float32", "bfloat16"))
    """Type of the weights in memory; auto: as stored."""
    device_map: str = option("", choices=("", "auto"))
    """auto: spread the layers over the devices; empty: one device."""
    attention: str = option("auto", choices=("auto", "eager", "sdpa"))
    """Attention implementation; auto: the library's choice. Groups share their prompt through 4-D masks, which these take."""
    chat_template: str = option("auto", choices=("auto", "always", "never"))
    """Word prompts as chat; auto: where the tokenizer has a template."""
    thinking: bool = False
    """Ask a chat template that knows of it to open with thinking; that wants a larger max_completion_tokens."""
    parameters: float = option(0.0, low=0)
    """Number of parameters, for the memory estimate of the dry plan; 0: unknown."""
    from_scratch: bool = False
    """Build the architecture with random weights in place of loading them."""
    max_prompt_tokens: int = option(1024, low=1)
    """Longest prompt taken; a longer one is never cut: left out of training, a failure in evaluation."""
    max_completion_tokens: int = option(1024, low=1)
    """Longest completion sampled, in training and in evaluation; a longer one fails as truncated."""
    trust_remote_code: bool = False
    """Run Python code that comes with a checkpoint."""

    @property
    def embedded(self) -> bool:
        return not self.path and not self.name

    def problems(self) -> list[Problem]:
        found = []
        if self.from_scratch and not self.embedded:
            found.append(
                Problem(
                    "from_scratch", "only the embedded model is built from scratch", remedy="drop it, or model=tiny"
                )
            )
        return found
