"""Options of +stage=rescore and +stage=replay, which read an earlier run."""

from dataclasses import dataclass

from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Rescore:
    """Options of +stage=rescore."""

    run: str = ""
    """Run directory whose rollouts are verified a second time; its data, verifier and sandbox are inherited, except for
    options that are given here."""
    output: str = ""
    """Old and new verdicts, one JSON object a line, in the order of the rollouts; empty: rescored.jsonl in this run's
    own directory."""

    def problems(self) -> list[InputProblem]:
        if self.output.endswith(".gz"):
            return [InputProblem("output", "is written as plain text, so that it can be resumed", self.output)]
        return []


@dataclass
class Replay:
    """Options of +stage=replay."""

    run: str = ""
    """Run directory of the step; its data, verifier, sandbox, reward and algorithm are inherited, except for options
    that are given here."""
    step: int = option(1, low=1)
    """The step to repeat, counted from 1 as in the metrics."""
    update: bool = True
    """Also repeat sampling and updates up to the step, from the newest checkpoint before it, and compare the row of
    metrics."""
    breakpoint: bool = False
    """Stop in the debugger with everything by name; needs run.inline=true."""
