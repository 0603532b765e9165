"""A cascade without a model and without Dafny: texts and verdicts are scripted, parsing of texts is real."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from rlvr_exp.config.cascade import Cascade as Options
from rlvr_exp.curriculum.uniform import Uniform
from rlvr_exp.episodes.types import Completion, TokenSample
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rewards.terms import AllPassed
from rlvr_exp.rollouts.cascade import Cascade
from rlvr_exp.rollouts.cascade_collect import CascadeCollector, Paid
from rlvr_exp.rollouts.group_filter import GroupFilter
from rlvr_exp.rollouts.rollout_loop import RolloutRequest, RolloutResult
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.dafny.domain import DafnyDomain
from rlvr_exp.tasks.dafny.two_stage import TwoStage
from rlvr_exp.verifiers.base import Verdict

HEAD, SPEC = "method Twice(n: nat) returns (r: nat)\n", "  ensures r == 2 * n\n"
GOOD = "{\n  r := n + n;\n}"
LOOP = "{\n  r := 0;\n  var i := 0;\n  while i < n\n  {\n    i := i + 1;\n    r := r + 2;\n  }\n}"
PROVED = LOOP.replace("while i < n\n", "while i < n\n    invariant i <= n && r == 2 * i\n")
WRONG, ASSUMES, NO_BODY = "{\n  r := n;\n}", "{\n  assume false;\n}", "no"
CUT_TEXT = "cut"
Script = Callable[[str, RolloutRequest, tuple | None], tuple[str, Verdict]]
"""(role, request, key) -> text and verdict of a completion."""


def domain(folder: Path, count: int = 3) -> TwoStage:
    rows = [
        {"id": f"twice{i}", "header": HEAD, "spec": SPEC, "body": LOOP, "annotated_body": PROVED, "after": "\n"}
        for i in range(count)
    ]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return TwoStage(
        *(DafnyDomain(str(folder), role, dev_fraction=0, test_fraction=0) for role in ("writer", "annotator"))
    )


@contextmanager
def scripted(script: Script, asked: list[tuple[str, RolloutRequest]] | None = None) -> Iterator[None]:
    """`asked` records every request with its role."""

    def generate_and_verify(policy, domain, verifier, requests: Sequence[RolloutRequest], sampling) -> RolloutResult:
        role = policy.role
        if asked is not None:
            asked.extend((role, request) for request in requests)
        rows = [tuple(_answer(role, domain, one, i, key) for i, key in enumerate(one.keys)) for one in requests]
        return RolloutResult(tuple(rows), {"generate": 1.0, "verify": 0.5})

    def _answer(role: str, domain, request: RolloutRequest, sample: int, key) -> Completion:
        text, verdict = script(role, request, key)
        drawn = TokenSample(tuple(range(1 + len(text) % 5)), (-1.0,) * (1 + len(text) % 5), text == CUT_TEXT)
        return Completion(request.task, sample, drawn, text, domain.parse(text, request.task), verdict, 2.0, 1.0)

    with mock.patch("rlvr_exp.rollouts.cascade.generate_and_verify", generate_and_verify):
        yield


def cascade(two: TwoStage, attempts: int = 1, room: int = 10_000) -> Cascade:
    policies = {
        role: SimpleNamespace(role=role, model=None, encode_prompt=lambda text: [ord(letter) for letter in text])
        for role in ("writer", "annotator")
    }
    return Cascade(two, policies, None, {"writer": None, "annotator": None}, room, attempts)


def tasks_of(two: TwoStage) -> Sequence[Task]:
    return two.writer.splits()["train"]


def collector(two: TwoStage, rule: Callable[[Paid], list[float | None]], **options) -> CascadeCollector:
    """Two tasks per step, three bodies for each. `rule`: the writer's credit."""
    filters = {role: GroupFilter("keep", 1e-6) for role in ("writer", "annotator")}
    shapes = dict.fromkeys(filters, lambda reward, tokens: reward)
    settings = Options(**{"annotations": 2, **options})
    reward, curriculum = Reward({"passed": AllPassed(weight=1.0)}), Uniform(tasks_of(two), 0)
    return CascadeCollector(
        cascade(two, settings.attempts), settings, reward, curriculum, 2, 3, filters, shapes, rule, seed=0
    )


PASSED = Verdict("passed", passed=1, total=1)


def failed(bucket: str) -> Verdict:
    return Verdict("failed", bucket, log=f"it says {bucket}")


def on_written(request: RolloutRequest) -> bool:
    """The request belongs to the cascade, not to the writer's own domain."""
    return request.task.problem.keep is not None
