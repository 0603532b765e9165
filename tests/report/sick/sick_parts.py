"""Components of a run that are broken on purpose, each in one way."""

import random
from dataclasses import dataclass, replace

from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.rewards.compose import Reward, RewardBreakdown
from rlvr_exp.rewards.terms import AllPassed
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Direct, Verdict
from rlvr_exp.verifiers.futures import completed_future, then
from rlvr_exp.verifiers.python_io import PythonIO


class Deaf(Arc):
    """Finds no answer in any completion."""

    def parse(self, completion, task):
        return Candidate(None, "no <answer> in the completion")


class Down(Direct):
    """Cannot reach its grader."""

    name, version, row_format = "down", "1", "python_io"

    def judge(self, request):
        return Verdict("no_verdict", log="connection refused: grader.internal:8080")


@dataclass
class Constant:
    """Gives everyone the same reward."""

    def __post_init__(self):
        self._reward = Reward({"all_passed": AllPassed(1.0)})

    def __getattr__(self, name):
        return getattr(self._reward, name)

    def __call__(self, judged):
        return [_paid(one, self.pay(one)) for one in judged]

    def pay(self, one):
        return 0.5


class Long(Constant):
    """Rewards the length of the answer, and being right next to nothing."""

    def pay(self, one):
        return one.tokens / 10 + 0.01 * one.correct


def _paid(one, value):
    if one.verdict.outcome == "no_verdict":
        return RewardBreakdown(None, None, {})
    return RewardBreakdown(value, value, {"own": value})


class UpsideDown(Constant):
    """The sign is wrong."""

    def pay(self, one):
        return -1.0 if one.correct else -0.001 * one.tokens


class Form(Constant):
    """Rewards everything that parses as a program."""

    def pay(self, one):
        return float(one.candidate.text is not None)


class Chance(Constant):
    """Gives random rewards."""

    def pay(self, one):
        return random.random()


class Slow(Direct):
    """Ends nearly every candidate at its limit."""

    name, version, row_format = "slow", "1", "python_io"

    def judge(self, request):
        if random.random() < 0.05:
            return Verdict("passed", passed=1, total=1)
        return Verdict("failed", "timeout", total=1, log="over 0.01 s of CPU")


class Dice(Slow):
    """Gives random verdicts."""

    name = "dice"

    def judge(self, request):
        if random.random() < 0.5:
            return Verdict("passed", passed=1, total=1)
        return Verdict("failed", "wrong_answer", total=1, log="case 0: got 1, expected 2")


class Lenient(Slow):
    """Lets everything pass that is text."""

    name = "lenient"

    def judge(self, request):
        if request.candidate.text is None:
            return Verdict("failed", "parse", log=request.candidate.fault)
        return Verdict("passed", passed=1, total=1)


class Leaky(Deaf):
    """Words a task with its answer."""

    def parse(self, completion, task):
        return Arc.parse(self, completion, task)

    def task_prompt(self, task):
        return f"{task.gold}\n{super().task_prompt(task)}"


class Chosen(Leaky):
    """Other training tasks than the corpus has."""

    def task_prompt(self, task):
        return Arc.task_prompt(self, task)

    def splits(self):
        found = super().splits()
        return {**found, "train": tuple(self.chosen(found["train"]))}


class Same(Chosen):
    """One task under many names."""

    def chosen(self, tasks):
        return [replace(tasks[0], id=f"{tasks[0].id}_{number}") for number in range(200)]


class Few(Chosen):
    """Few tasks, of which a policy learns the answers."""

    def chosen(self, tasks):
        return tasks[:4]


class Hard(Chosen):
    """Tasks beyond the policy: every answer has to be rotated twice and recoloured."""

    def chosen(self, tasks):
        return [replace(task, problem=repainted(task.problem), gold=None) for task in tasks[:200]]


class Mislabelled(Chosen):
    """Expected outputs of another puzzle."""

    def splits(self):
        return {name: [replace(one, problem=repainted(one.problem)) for one in some]
                for name, some in Arc.splits(self).items()}  # fmt: skip


def repainted(problem):
    """Every colour of every expected output is another one."""
    return replace(problem, cases=tuple(map(_repainted, problem.cases)))


def _repainted(case):
    return replace(case, expected=[[(cell + 5) % 10 for cell in row] for row in case.expected])


class PartlyWrong(Chosen):
    """Four in ten training tasks have the expected outputs of another puzzle."""

    def chosen(self, tasks):
        return [
            replace(task, problem=repainted(task.problem)) if index % 5 < 2 else task
            for index, task in enumerate(tasks)
        ]


class Weak(Chosen):
    """Half of the training tasks have a single case, which the verifier `unrun` never runs."""

    def chosen(self, tasks):
        return [
            replace(task, problem=replace(task.problem, cases=task.problem.cases[:1])) if index % 2 else task
            for index, task in enumerate(tasks)
        ]


class HeldOut(Chosen):
    """Trains on the held-out tasks under other names."""

    def splits(self):
        found = Arc.splits(self)
        return {**found, "train": tuple(replace(one, id=f"again_{one.id}") for one in found["test"])}


class Shuffled(Chosen):
    """Reference answers of other tasks; the tests are right."""

    def chosen(self, tasks):
        golds = [task.gold for task in tasks]
        return [replace(task, gold=gold) for task, gold in zip(tasks, golds[7:] + golds[:7], strict=True)]


class OneFamily(Chosen):
    """Training tasks of a single family."""

    def chosen(self, tasks):
        family = max({task.family for task in tasks}, key=lambda name: sum(one.family == name for one in tasks))
        return [task for task in tasks if task.family == family]


class Noisy(Constant):
    """Adds noise of several times the value of a pass."""

    def pay(self, one):
        return float(one.correct) + random.uniform(-3.0, 3.0)


class Offset(Constant):
    """All rewards are positive."""

    def pay(self, one):
        return 5.0 + one.correct


class Short(Constant):
    """Rewards short answers far more than right ones."""

    def pay(self, one):
        return float(one.correct) - one.tokens


class Flaky(PythonIO):
    """Turns one verdict in six around."""

    name, version = "flaky", "1"

    def submit(self, request):
        return then(super().submit(request), _at_times_turned)


class Overloaded(PythonIO):
    """Reaches no verdict on four candidates in ten."""

    name, version = "overloaded", "1"

    def submit(self, request):
        lost = Verdict("no_verdict", log="the queue of the grader is full")
        return then(super().submit(request), lambda found: lost if random.random() < 0.4 else found)


class Unrun(PythonIO):
    """Passes every program on a problem with a single case."""

    name, version = "unrun", "1"

    def submit(self, request):
        if len(request.problem.cases) == 1 and request.candidate.text is not None:
            return completed_future(Verdict("passed", passed=1, total=1))
        return super().submit(request)


def _at_times_turned(verdict):
    if random.random() > 1 / 6 or verdict.outcome == "no_verdict":
        return verdict
    if verdict.outcome == "passed":
        return Verdict("failed", "wrong_answer", total=verdict.total, log="case 0: got 1, expected 2")
    return Verdict("passed", passed=1, total=1)
