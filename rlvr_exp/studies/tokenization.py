"""What a tokenizer is worth: models that see the same tasks in other tokens, by what the same golds cost them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rlvr_exp.config import model_studies as options
from rlvr_exp.records import manifest
from rlvr_exp.studies.model_arms import MODELS, model_findings
from rlvr_exp.studies.study import ArmStudy, Findings, Job, Run


class Tokenization(options.Tokenization, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[Run]) -> Findings:
        found = model_findings(runs, self.metric, self.equal)
        counts = {row["arm"]: row["tokens_a_task"] for row in found.tables[MODELS] if "tokens_a_task" in row}
        return replace(found, answer=[*_unequal_texts(runs), *found.answer, *_tokens(counts)])


def _unequal_texts(runs: Sequence[Run]) -> Iterator[str]:
    """A sentence where arms imitated other numbers of tasks: long ones are left out by their tokens."""
    counts = {
        run.job.arm: manifest.section(run.directory, "imitation").get("examples") for run in runs if run.completed
    }
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{arm} {count}" for arm, count in counts.items())
        yield f"Unequal texts: arms imitated other numbers of tasks ({listed}); algorithm.max_sequence_tokens leaves long ones out."


def _tokens(counts: Mapping[str, float]) -> Iterator[str]:
    if counts:
        least, most = (choose(counts, key=counts.__getitem__) for choose in (min, max))
        yield f"A task with its gold is {counts[least]:,.0f} tokens by {least}, {counts[most]:,.0f} by {most}."
