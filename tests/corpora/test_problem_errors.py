"""A base's own errors: which programs of an evaluation measure tests, and that those of the package are wrong and trained on by nobody."""

import json
import lzma
from types import SimpleNamespace

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.corpora.problems.errors import errors_of, make
from rlvr_exp.episodes.types import Completion, TokenCount
from rlvr_exp.records.rollout_files import EvalSample, write_evaluation
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.tasks.problems.source import ERRORS
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.python_tests import PythonTests

WRONG = Verdict("failed", "wrong_answer", passed=1, total=2)


def sample(task: str, program: str | None, verdict: Verdict, number: int = 0) -> EvalSample:
    asked = Task(task, "f", 0.0, None, None, None)
    one = Completion(asked, number, TokenCount(1, False), program or "", Candidate(program), verdict)
    return EvalSample(one, mode="sampled", prompt="p")


def test_what_ran_and_was_wrong_is_kept_once_the_most_frequent_first() -> None:
    samples = [
        sample("a", "def f(x):\n    return x", WRONG),
        sample("a", "def f(x):\n    return 1", WRONG, 1),
        sample("a", "def f(x):\n    return 1", WRONG, 2),
        sample("a", "def f(y):\n    return 1", WRONG, 3),
        sample("a", "def f(x):\n    return 2", Verdict("passed", passed=2, total=2), 4),
        sample("b", "def f(x):\n    return 1 // 0", Verdict("failed", "runtime_error"), 0),
        sample("b", None, Verdict("failed", "parse"), 1),
    ]
    (row,) = errors_of(samples)
    assert row["id"] == "a" and [text.split()[-1] for text in row["wrong"]] == ["1", "x"]


def test_the_maker_writes_a_problem_a_line_and_names_a_run_without_an_evaluation(tmp_path) -> None:
    write_evaluation(
        tmp_path, "after", [sample("b", "def f(x):\n    return 1", WRONG), sample("a", "def f(): pass", WRONG)]
    )
    options = SimpleNamespace(runs=[str(tmp_path)], output=str(tmp_path / "errors.xz"))
    assert make(SimpleNamespace(prepare=options), None)[1] == {"problems": 2, "programs": 2}
    with lzma.open(options.output, "rt") as lines:
        assert [json.loads(line)["id"] for line in lines] == ["a", "b"]
    options.runs = [str(tmp_path / "none")]
    with pytest.raises(InputError, match="no evaluation is there"):
        make(SimpleNamespace(prepare=options), None)


@pytest.mark.slow
def test_those_of_the_package_are_of_held_out_problems_alone_and_no_test_passes_all_of_them() -> None:
    with lzma.open(ERRORS, "rt") as lines:
        errors = {row["id"]: row["wrong"] for row in map(json.loads, lines)}
    assert {name.rsplit("-", 1)[0] for name in errors} == {"dev", "test", "test_unseen"} and len(errors) > 400
    domain = build(compose(["+stage=sft", "data=problems"]).config.data)
    tasks = {task.id: task for split in ("dev", "test", "test_unseen") for task in domain.splits()[split]}
    assert all(set(errors[name]) <= set(tasks[name].negatives) for name in errors)
    with PythonTests(Sandbox(workers=1)) as verifier:
        shown = sorted(errors)[::40]
        pairs = [(tasks[name].problem, program) for name in shown for program in errors[name]]
        judged = [verifier.submit(Request(problem, Candidate(program))) for problem, program in pairs]
        assert {one.result(timeout=60).bucket for one in judged} == {"wrong_answer"}
