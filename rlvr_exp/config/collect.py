"""Options of the node `collect`, which exists under +stage=collect alone: who shows how, on which tasks, and where it is kept."""

from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.options import option
from rlvr_exp.config.sampling import Drawing
from rlvr_exp.core.errors import InputProblem

TEACHERS = ("policy", "golds")


@dataclass
class Collect(Drawing):
    """Options of +stage=collect."""

    teacher: str = option("policy", choices=TEACHERS)
    """Who acts. policy: the model node's, or the endpoint of engine=server; golds: the data's own actions, rule by rule."""
    split: str = "train"
    """Split of the data whose tasks are shown."""
    skip: int = option(0, low=0)
    """The first N tasks are left out, such as those that another teacher has."""
    tasks: int = option(0, low=0)
    """N tasks from there; 0: all."""
    samples: int = option(1, low=1)
    """Trajectories sampled of each task."""
    output: str = ""
    """Trajectories, one JSON object a line, in the order of the tasks; empty: trajectories.jsonl in the run directory."""
    max_tokens: int = option(0, low=0)
    """Stop after so many sampled tokens in all, those of an earlier run of the same output among them; 0: no limit."""
    max_cost: float = option(0.0, low=0)
    """Stop once this run's endpoint has cost so much (engine.prompt_price, engine.completion_price); 0: no limit."""
    batch_size: int = option(64, low=1)
    """Trajectories at once. They are written after each batch. If a preset sets a smaller evaluation.batch_size, that is the
    default."""

    def problems(self) -> list[InputProblem]:
        found = self.drawing_problems()
        if self.teacher == "policy":
            return found
        unread: dict[str, Any] = {
            "samples": 1,
            "temperature": 1.0,
            "top_k": 0,
            "top_p": 1.0,
            "min_p": 0.0,
            "max_tokens": 0,
            "max_cost": 0.0,
        }
        for name, default in unread.items():
            if getattr(self, name) != default:
                what, got = "has no effect here: golds are not sampled", str(getattr(self, name))
                found.append(InputProblem(name, what, got, "its default", "", "collect.teacher=policy, or drop it"))
        return found
