"""A cascade without a model and without Dafny: texts and verdicts are scripted, parsing of texts is real."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

from rlvr_exp.curriculum.base import Uniform
from rlvr_exp.domains.dafny.cascade import Cascade, Widths
from rlvr_exp.domains.dafny.options import ROLES
from rlvr_exp.domains.dafny.tasks import DafnyDomain, TwoStage
from rlvr_exp.episodes.episode import Draws, Episode
from rlvr_exp.episodes.types import Completion, TokenSample
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rewards.terms import AllPassed
from rlvr_exp.rollouts.collect import BatchPlan, Collector, RoleRules
from rlvr_exp.rollouts.engines.base import RolloutRequest
from rlvr_exp.rollouts.groups import GroupFilter
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player, RolloutResult
from rlvr_exp.tasks.base import Task
from rlvr_exp.verifiers.base import Verdict

HEAD, SPEC = "method Twice(n: nat) returns (r: nat)\n", "  ensures r == 2 * n\n"
GOOD = "{\n  r := n + n;\n}"
LOOP = "{\n  r := 0;\n  var i := 0;\n  while i < n\n  {\n    i := i + 1;\n    r := r + 2;\n  }\n}"
PROVED = LOOP.replace("while i < n\n", "while i < n\n    invariant i <= n && r == 2 * i\n")
WRONG, ASSUMES, NO_BODY = "{\n  r := n;\n}", "{\n  assume false;\n}", "no"
CUT_TEXT = "cut"
Script = Callable[[str, RolloutRequest, tuple], tuple[str, Verdict]]
"""(role, request, key) -> text and verdict of a completion."""
PASSED = Verdict("passed", passed=1, total=1)


def failed(bucket: str) -> Verdict:
    return Verdict("failed", bucket, log=f"it says {bucket}")


def domain(folder: Path, count: int = 3) -> TwoStage:
    rows = [
        {"id": f"twice{i}", "header": HEAD, "spec": SPEC, "body": LOOP, "annotated_body": PROVED, "after": "\n"}
        for i in range(count)
    ]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return TwoStage(*(DafnyDomain(str(folder), role=role, dev_fraction=0, test_fraction=0) for role in ROLES))


def tasks_of(two: TwoStage) -> Sequence[Task]:
    return two.writer.splits()["train"]


class Scripted:
    """Answers requests by a script, and records them with their role."""

    def __init__(self, script: Script):
        self.script = script
        self.asked: list[tuple[str, RolloutRequest]] = []

    def __call__(self, policy, domain, verifier, requests: Sequence[RolloutRequest], sampling) -> RolloutResult:
        self.asked += [(policy.role, request) for request in requests]
        rows = [
            tuple(self._answer(policy.role, domain, one, i, key) for i, key in enumerate(one.keys)) for one in requests
        ]
        return RolloutResult(tuple(rows), {"generate": 1.0, "verify": 0.5})

    def _answer(self, role: str, domain, request: RolloutRequest, sample: int, key) -> Completion:
        text, verdict = self.script(role, request, key)
        drawn = TokenSample(tuple(range(1 + len(text) % 5)), (-1.0,) * (1 + len(text) % 5), text == CUT_TEXT)
        candidate = domain.parse(text, request.task)
        return Completion(request.task, sample, drawn, text, candidate, verdict, seconds=2.0, drawn=1.0)

    def of(self, role: str) -> list[RolloutRequest]:
        return [request for who, request in self.asked if who == role]


class Recorder:
    """Proves nothing, and records what it judges."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.buckets: dict[str, str] = {}

    def verify(self, requests):
        texts = [one.candidate.text for one in requests]
        self.asked += texts
        return [failed(self.buckets.get(text, "verify")) for text in texts]


def runner(
    two: TwoStage, script: Script, widths: Widths, counterfactual: bool = False, room: int = 10_000
) -> EpisodeRunner:
    """`room`: tokens of the longest prompt of the annotator."""
    policies = {
        role: SimpleNamespace(
            role=role, model=None, encode_prompt=lambda text, tools=(): [ord(letter) for letter in text]
        )
        for role in ROLES
    }
    rooms = {"writer": 10_000, "annotator": room}
    players = {role: Player(policy, None, rooms[role]) for role, policy in policies.items()}
    return EpisodeRunner(Cascade(two, widths, counterfactual), players, Recorder(), Scripted(script))


def episode(two: TwoStage, made: EpisodeRunner, samples: Sequence[int] = (0, 1), place: tuple = (0, 0)) -> Episode:
    begun = made.environment.reset(tasks_of(two)[0], Draws(0, "rollout", place), samples)
    (done,) = made.run([begun])
    return done


def collector(
    two: TwoStage, script: Script, widths: Widths, counterfactual: bool = False, gold: bool = False
) -> Collector:
    """Two tasks per step, three bodies for each."""
    rules = dict.fromkeys(
        ROLES, RoleRules(GroupFilter("keep", 1e-6), lambda rewarded, _: tuple(one.total for one in rewarded))
    )
    return Collector(
        runner(two, script, widths, counterfactual),
        dict.fromkeys(ROLES, Reward({"passed": AllPassed(weight=1.0)})),
        Uniform(tasks_of(two), 0),
        tasks_of(two),
        BatchPlan(2, 3, 10),
        rules,
        seed=0,
        samples=() if gold else None,
    )
