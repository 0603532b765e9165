"""How tokens are drawn: options that the `algorithm` node (in training) and the `evaluation` node share."""

from dataclasses import dataclass

from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Drawing:
    """Temperature first, then the filters in the order of their fields, as Transformers applies them; each acts on what
    the one before it has kept, renormalised."""

    temperature: float = option(1.0, above=0)
    """Sampling temperature: logits are divided by it."""
    top_k: int = option(0, low=0)
    """Tokens are drawn from the k likeliest (and those as likely as the last of them); 0: from all."""
    top_p: float = option(1.0, above=0, high=1)
    """Tokens are drawn from the smallest set of the likeliest that holds this much of the probability; 1: from all."""
    min_p: float = option(0.0, low=0, high=1)
    """Tokens are drawn from those at least this share as likely as the likeliest; 0: from all."""
    stop: list[str] = option([])
    """Texts that end a completion, as its end token does; the text stays part of it."""

    def drawing_problems(self) -> list[InputProblem]:
        """Settings that no engine can honour."""
        if "" in self.stop:
            return [
                InputProblem(
                    "stop", "an empty text would end every completion at once", str(self.stop), remedy="drop it"
                )
            ]
        return []
