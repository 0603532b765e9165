"""Options of +stage=rescore, which reads an earlier run."""

from dataclasses import dataclass

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
