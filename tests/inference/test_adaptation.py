"""Test-time training: a task's adapter learns from its own shown cases, reads no hidden case, and leaves nothing behind."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import Model
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError, Interrupted
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.problems.rows import ProblemRow
from rlvr_exp.domains.problems.tasks import of_tiny_solver
from rlvr_exp.inference import Engine, load
from rlvr_exp.inference.adaptation import Adaptation, Lesson, TaskAdaptation, _passes
from rlvr_exp.inference.engine import logprob
from rlvr_exp.models.adapters import adapter_parameters
from rlvr_exp.models.policy import Policy
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.stages import infer
from rlvr_exp.tasks.base import Candidate, ShownTask, Task
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Execution, Request, Verdict
from rlvr_exp.verifiers.futures import completed_future
from rlvr_exp.verifiers.python_io import PythonIO

LIMITS = Model(max_prompt_tokens=1024, max_completion_tokens=64)
ADAPTS = {"decoding": "sample", "samples": 24, "adapt": "lora", "adapt_rounds": 3, "vote": 2}
TASKS = Arc().splits()["test_unseen"][:3]
"""Tasks of families that the policy has not seen: most need every round."""


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load().policy


@pytest.fixture(scope="module")
def verifier() -> Iterator[PythonIO]:
    with PythonIO(Sandbox(workers=1)) as found:
        yield found


@pytest.fixture
def engine(verifier: PythonIO) -> Engine:
    return Engine(load().policy, Infer(**ADAPTS), LIMITS, verifier, Arc())


def texts(solution) -> list[str]:
    return [solution.completion.text, *[answer.program for of_input in solution.voted.answers for answer in of_input]]


def test_a_task_is_solved_as_if_it_came_alone(engine: Engine) -> None:
    start = [value.clone() for value in engine.adaptation._weights]
    together = [solution.row() for solution in engine.solve_all(TASKS)]
    assert engine.adaptation.metrics()["adapt/updates"] > 0
    assert all(torch.equal(now, before) for now, before in zip(engine.adaptation._weights, start, strict=True))
    assert engine.solve(TASKS[-1]).row() == together[-1]


def test_the_next_round_is_drawn_from_other_weights(engine: Engine, verifier: PythonIO) -> None:
    plain = Engine(load().policy, Infer(**ADAPTS | {"adapt": "none", "adapt_rounds": 4}), LIMITS, verifier, Arc())
    drawn = []
    for one in (engine, plain):
        environment_runs = []
        one._generate = record(one._generate, environment_runs)
        one.solve(TASKS[0])
        drawn.append([completion.text for result in environment_runs for completion in result])
    assert len(drawn[0]) == len(drawn[1]) == 24
    assert drawn[0][:8] == drawn[1][:8] and drawn[0][8:] != drawn[1][8:]


def record(generate, into: list):
    def recorded(*given, **named):
        found = generate(*given, **named)
        into.extend(found.completions)
        return found

    return recorded


def with_other_answers(task: Task) -> Task:
    shown = len(task.inputs.train)
    cases = [case if n < shown else replace(case, expected=[[9]]) for n, case in enumerate(task.problem.cases)]
    return replace(task, problem=replace(task.problem, cases=tuple(cases)))


class Scrambles(PythonIO):
    """Verdicts that depend on the text alone. Executions are real."""

    def submit(self, request: Request):
        right = int(100 * uniform(str(request.candidate.text)))
        return completed_future(Verdict("failed", "wrong_answer", passed=right, total=100))


def test_hidden_pairs_are_never_read(engine: Engine) -> None:
    """The completions are the same if the hidden outputs and all verdicts are others."""
    solved = Arc().splits()["train"][0]
    drawn: list[list[str]] = []
    with Scrambles(Sandbox(workers=1)) as scrambles:
        for change, verifier in ((lambda task: task, engine._verifier), (with_other_answers, scrambles)):
            recorded: list = []
            one = Engine(engine.policy, Infer(**ADAPTS), LIMITS, verifier, Arc())
            one._generate = record(one._generate, recorded)
            for task in (solved, *TASKS):
                one.solve(change(task))
            drawn.append([completion.text for result in recorded for completion in result])
    assert drawn[0] == drawn[1] and len(drawn[0]) > 48


def test_the_rounds_end_with_a_program_that_passes_all_shown_pairs(engine: Engine) -> None:
    easy = Arc().splits()["train"][:4]
    recorded: list = []
    engine._generate = record(engine._generate, recorded)
    passed = sum(solution.passed for solution in engine.solve_all(easy))
    assert passed >= 2 and engine.adaptation.metrics()["adapt/passed_shown"] >= passed
    assert sum(map(len, recorded)) <= 24 * 4 - 8 * passed


def test_imitation_makes_its_lessons_likelier_and_leaves_others_out(policy: Policy, verifier: PythonIO) -> None:
    adaptation = Adaptation(policy, verifier, 0)
    model, domain = adaptation.policy.model, Arc()
    prompt = tuple(policy.encode_prompt(domain.task_prompt(TASKS[0])))
    good, light = (tuple(policy.encode_completion(f"def solve(g):\n    return g[{at}]")) for at in (1, 3))
    before = [logprob(model, prompt, ids) for ids in (good, light)]
    with adaptation.of_task(domain, TASKS[0]):
        adaptation.update([Lesson(prompt, good, 1.0), Lesson(prompt, light, 1e-6)])
        after = [logprob(model, prompt, ids) for ids in (good, light)]
    assert after[0] > before[0] + 1.0 and after[0] - before[0] > after[1] - before[1]
    assert [logprob(model, prompt, ids) for ids in (good, light)] == before


def test_a_policy_with_an_adapter_returns_to_it(verifier: PythonIO) -> None:
    policy = load(
        model=compose(["+stage=infer", "model.adapter.kind=lora", "model.adapter.rank=4"]).config.model
    ).policy
    with torch.no_grad():
        for value in adapter_parameters(policy.model, "default"):
            value.add_(0.01)
    start = [value.clone() for value in adapter_parameters(policy.model, "default")]
    engine = Engine(policy, Infer(**ADAPTS), LIMITS, verifier, Arc())
    engine.solve(TASKS[0])
    assert engine.adaptation.metrics()["adapt/updates"] == 2 and list(policy.model.peft_config) == ["default"]
    now = adapter_parameters(engine.policy.model, "default")
    assert all(torch.equal(value, before) for value, before in zip(now, start, strict=True))


def test_a_pass_has_a_bounded_number_of_tokens() -> None:
    lessons = [Lesson((1,) * 1000, (2,) * 900, 1.0) for _ in range(6)] + [Lesson((3,) * 9000, (2,), 1.0)]
    parts = list(_passes(lessons))
    assert [len(part) for part in parts] == [3, 3, 1] and [one for part in parts for one in part] == lessons


def test_credit_counts_right_cells_of_a_grid_of_the_right_shape() -> None:
    domain, expected = Arc(), [[1, 2], [3, 4]]
    shapes = [domain.credit(output, expected) for output in (None, "text", [[1, 2]], [[0, 0], [0, 0]])]
    assert shapes == [0.0, 0.0, 0.05, 0.1]
    assert domain.credit([(1, 2), (3, 0)], expected) == pytest.approx(0.1 + 0.9 * 0.75)


def test_a_coding_problem_shows_the_calls_of_its_prompt_alone() -> None:
    shown, hidden = Case((1,), 2), Case((5,), 6)
    row = ProblemRow(
        "p", "Add one.", "f", "def f(x):\n    return x + 1", PythonProblem("f", (hidden,), atol=0.1), (shown,)
    )
    domain, _ = of_tiny_solver()
    found = domain.shown_task(domain.task(row))
    assert found.problem == PythonProblem("f", (shown,), atol=0.1) and found.shown == 1


def test_a_program_that_raises_does_not_earn_a_shown_case_that_expects_none(verifier: PythonIO) -> None:
    problem = PythonProblem("f", (Case((1,), None), Case((2,), 3)))
    texts = ["def f(x):\n    return None if x == 1 else 3", "def f(x):\n    return 3 if x == 2 else [][0]", "def"]
    runs = [verifier.execute(Request(problem, Candidate(text))).result() for text in texts]
    assert [[run.returned(case) for case in range(2)] for run in runs] == [[True, True], [False, True], [False, False]]
    owner = SimpleNamespace(executor=verifier)
    domain = SimpleNamespace(shown_task=lambda task: ShownTask(problem, 2), credit=lambda output, expected: 0.0)
    learner = TaskAdaptation(owner, domain, None)
    assert [learner._credits(run) for run in runs] == [(1.0, 1.0), (0.0, 1.0), (0.0, 0.0)]


class Counts(PythonIO):
    """Counts executions."""

    def execute(self, request: Request):
        self.texts = [*getattr(self, "texts", []), request.candidate.text]
        return super().execute(request)


def test_adaptation_and_vote_share_the_run_of_a_program() -> None:
    with Counts(Sandbox(workers=1)) as verifier:
        found = Engine(load().policy, Infer(**ADAPTS), LIMITS, verifier, Arc()).solve(TASKS[0])
    assert found.voted is not None and len(verifier.texts) == len(set(verifier.texts)) > 3


class Broken(PythonIO):
    """An executor that breaks down."""

    def execute(self, request: Request):
        return completed_future(Execution(Verdict("no_verdict"), ()))


def test_nothing_is_learned_from_programs_without_a_verdict() -> None:
    with Broken(Sandbox(workers=1)) as verifier:
        engine = Engine(load().policy, Infer(**ADAPTS), LIMITS, verifier, Arc())
        assert engine.solve(TASKS[0]).voted is None
    assert engine.adaptation.metrics() == {"adapt/tasks": 1, "adapt/updates": 0, "adapt/passed_shown": 0}


WORDS = [
    *("+stage=infer", "infer.decoding=sample", "infer.samples=24", "infer.adapt=lora", "infer.adapt_rounds=3"),
    *(
        "infer.split=test_unseen",
        "infer.tasks=2",
        "infer.vote=2",
        "sandbox.workers=1",
        "model.max_completion_tokens=64",
    ),
]


def stage(folder: Path, output: Path, stop_after: int = 0):
    context = RunContext(folder, lambda event: None)
    folder.mkdir()
    manifest.begin(folder, "infer", 0, [], "")
    if stop_after:
        context._send = lambda event: setattr(
            context, "interrupted", context.interrupted or event.get("done", 0) >= stop_after
        )
    return infer.run(compose([*WORDS, f"infer.output={output}"]).config, context)


@pytest.mark.slow
def test_a_run_stopped_within_a_task_goes_on_to_the_same_answers(tmp_path: Path) -> None:
    whole = stage(tmp_path / "whole", tmp_path / "whole.jsonl")
    assert whole.metrics["adapt/tasks"] == 2 and whole.metrics["adapt/updates"] > 2
    with pytest.raises(Interrupted):
        stage(tmp_path / "first", tmp_path / "out.jsonl", stop_after=30)
    before = len((tmp_path / "out.jsonl").read_text().splitlines())
    stage(tmp_path / "second", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text() and before < 2
    config = compose([*WORDS, f"infer.output={tmp_path / 'out.jsonl'}", "infer.adapt_rounds=5"]).config
    with pytest.raises(InputError, match="another decoding"):
        infer.run(config, RunContext(tmp_path / "second", lambda event: None))


def test_rows_without_shown_cases_are_refused(tmp_path: Path) -> None:
    row = {"id": "add", "entry_point": "add", "cases": [{"args": [2, 3], "expected": 5}]}
    (tmp_path / "in.jsonl").write_text(json.dumps(row) + "\n")
    context = RunContext(tmp_path / "run", lambda event: None)
    context.directory.mkdir()
    manifest.begin(context.directory, "infer", 0, [], "")
    with pytest.raises(InputError, match="(?s)infer.adapt: a policy adapts to cases.*task 'add'"):
        infer.run(compose([*WORDS[:5], f"infer.input={tmp_path / 'in.jsonl'}"]).config, context)
