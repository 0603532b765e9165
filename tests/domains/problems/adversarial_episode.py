"""Episodes of a solver and a tester whose words are given, judged by the real verifier."""

from told_episode import told

from rlvr_exp.domains.problems.adversarial import Adversarial
from rlvr_exp.domains.problems.options import SOLVER, TESTER, ReasoningStage
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.episodes.episode import Draws, Episode

RIGHT, NEGATIVE, ZERO = (
    "def size(x):\n    return abs(x)",
    "def size(x):\n    return x",
    "def size(x):\n    return abs(x) or 1",
)
ROW = {
    "id": "t",
    "text": "Write size(x). It returns x without its sign.",
    "entry_point": "size",
    "solution": RIGHT,
    "tests": [{"args": [3], "expected": 3}, {"args": [-3], "expected": 3}],
    "split": "train",
}
STAGES = {"plan": ReasoningStage(), "code": ReasoningStage(form="code")}
CATCHES = ["size(-2) == 2", "size(0) == 0"]
BARE = {"critiques": False, "mask": "none", "penalty": 0.0}
"""Without what most tests here are not about."""


def played(
    verifier,
    domain: Problems,
    codes: list[str],
    written: list[str],
    environment=None,
    step=0,
    chains=0,
    plan="1. plan",
    purpose="rollout",
    **given,
):
    """An episode of chains with these programs, and sets of tests in turn; what ends with "..." is an answer that is cut. Second attempts have the
    programs after those of the first ones; a critique says ok of a right program and of every plan."""
    drawn, chains = iter(written), chains or len(codes)
    environment = environment or Adversarial(domain, **{"tests": len(written), **BARE, **given})

    def answer(task, key) -> str:
        stage, rest = task.inputs.stage, key[key.index("t") + 1 :]
        if stage == "tests":
            return next(drawn)
        if stage in ("plan", "plan?"):
            return {"plan": plan}.get(stage, "ok")
        if stage == "code?":
            return "ok" if task.inputs.chain["code"] == RIGHT else "wrong: without its sign"
        branched = len(rest) > 3 and isinstance(rest[3], int)
        return codes[rest[3 if branched else 0] + rest.count("again") * chains]

    (task,) = domain.splits()["train"]
    draws = Draws(0, purpose, (step, 0))
    return environment, told(environment, verifier, answer, task, draws, range(chains), (SOLVER, TESTER))


def credits_of(environment: Adversarial, done: Episode, role: str) -> list[float | None]:
    """By sample: of each chain's program, or of each set of tests."""
    found = environment.credit(done, {})
    return [found[place].total for place in (environment.ends(done) if role == SOLVER else environment.suites(done))]
