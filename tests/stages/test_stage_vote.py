"""Voting as a person starts it: before and after a training run, in an evaluation held against it, on hidden outputs, and
refused where nothing is held back."""

import json
from copy import deepcopy
from pathlib import Path

import pytest
from program import run_program

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.inference.solution import KEYS
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import read_evaluation
from rlvr_exp.stages import infer

FIRST, TOP = "voted_at_8", "voted_at_8_top_2"
SIZE = ["evaluation.tasks=16", "evaluation.samples=8"]


def summary_of(run: Path) -> dict:
    return json.loads((run / "summary.json").read_text())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vote")
    done = run_program(folder, "+stage=grpo", "+experiment=quick", *SIZE, "evaluation.vote=2", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "run"


@pytest.mark.slow
def test_a_vote_is_measured_before_and_after_training(trained: Path) -> None:
    summary = summary_of(trained)
    for side in ("before", "after"):
        rates = summary[side]
        assert list(rates) == ["pass_at_1", "pass_at_1_greedy", "pass_at_8", FIRST, TOP]
        assert rates[FIRST]["n"] == 16 and rates[FIRST]["samples"] == 8
        assert 0 < rates[FIRST]["low"] < rates[FIRST]["value"] <= rates[TOP]["value"] < rates[TOP]["high"] < 1
    change = json.loads((trained / "evaluation" / "after.json").read_text())["change"]
    assert change[TOP]["n"] == change[TOP]["won"] + change[TOP]["lost"] + change[TOP]["tied"] == 16


@pytest.mark.slow
def test_the_report_has_the_vote_beside_the_other_rates(trained: Path) -> None:
    page = (trained / "report.html").read_text()
    table = page[page.index('<table class="rates">') :].partition("</table>")[0]
    titles = ("pass@1, sampled", "pass@1, greedy", "pass@8", "voted@8, one answer", "voted@8, up to 2 answers")
    places = [table.index(f"<th>{title}</th>") for title in titles]
    assert places == sorted(places)
    rate = summary_of(trained)["before"][TOP]
    shown = table[places[-1] :]
    assert f"<b>{100 * rate['value']:.1f}%</b> <small>{100 * rate['low']:.1f} to {100 * rate['high']:.1f}" in shown
    assert shown.count("data-label") == 3 and "not measured" not in shown


@pytest.mark.slow
def test_every_sample_says_how_its_task_s_vote_went(trained: Path) -> None:
    rows = read_evaluation(trained, "after")
    assert {one.mode for one in rows if one.about} == {"sampled"}
    assert all(one.about["voted"]["answers"] == 2 for one in rows if one.mode == "sampled")


@pytest.mark.slow
def test_a_policy_is_compared_by_its_vote_with_a_run_that_had_one(trained: Path, tmp_path: Path) -> None:
    words = ["evaluation.vote=2", f"evaluate.baseline={trained}", "run.dir=again"]
    limit = f"model.max_completion_tokens={compose(['+stage=grpo', '+experiment=quick']).config.model.max_completion_tokens}"
    done = run_program(tmp_path, "+stage=evaluate", "+experiment=quick", *SIZE, limit, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = summary_of(tmp_path / "again")
    assert summary["metrics"][f"difference/{TOP}"]["n"] == 16
    assert f"{TOP}: " in done.stderr + done.stdout
    assert summary["after"] == summary_of(trained)["before"], "the same weights, tasks and draws"
    found = run_program(
        tmp_path, "+stage=compare", f"compare.runs=[{trained},{tmp_path / 'again'}]", "run.dir=compared"
    )
    assert found.returncode == 0, found.stderr
    compared = json.loads((tmp_path / "compared" / "compare.json").read_text())
    assert compared["differences"][TOP][1]["n"] == 16


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["+stage=grpo", "evaluation.vote=2", "data=dafny", "verifier=dafny"], "evaluation.vote: programs vote on"),
        (["+stage=infer", "infer.vote=1", "data=dafny", "verifier=dafny"], "infer.vote: programs vote on"),
        (["+stage=evaluate", "evaluation.vote=2", "environment=retry"], "evaluation.vote: a second turn has seen"),
        (["+stage=evaluate", "evaluation.vote=-1"], "evaluation.vote"),
    ],
)
def test_what_has_no_vote_is_refused_before_anything_starts(words: list[str], told: str, tmp_path: Path) -> None:
    done = run_program(tmp_path, *words, "run.dir=run")
    assert done.returncode == 2 and told in done.stderr and done.stderr.startswith("1 problem"), done.stderr
    assert list(tmp_path.iterdir()) == []


SAMPLED = ["infer.decoding=sample", "infer.samples=8", "infer.batch_size=16"]


def puzzles(path: Path, hidden: bool) -> Path:
    """Six embedded puzzles, with or without their test outputs."""
    rows = []
    for task in Arc().splits()["test"][:6]:
        cases = [{"input": case.args[0], "output": case.expected} for case in task.problem.cases]
        test = [{"input": case["input"]} for case in cases[-1:]] if hidden else cases[-1:]
        rows.append({"id": task.id, "train": cases[:-1], "test": test})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def inferred(folder: Path, *words: str) -> tuple[list[dict], dict]:
    """Rows and rates of the stage in this process."""
    context = RunContext(folder, lambda event: None)
    folder.mkdir()
    manifest.begin(folder, "infer", 0, [], "")
    found = infer.run(compose(["+stage=infer", *SAMPLED, *words]).config, context)
    rows = [json.loads(line) for line in Path(context.directory / "answers.jsonl").read_text().splitlines()]
    return rows, found.after


@pytest.fixture(scope="module")
def voted(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict], dict]:
    folder = tmp_path_factory.mktemp("infer")
    return inferred(folder / "run", f"infer.input={puzzles(folder / 'in.jsonl', hidden=False)}", "infer.vote=2")


@pytest.mark.slow
def test_answers_are_voted_where_the_outputs_are_hidden(voted, tmp_path: Path) -> None:
    """The same as where they are given, which are not looked at; only whether they are right is not known."""
    rows, rates = inferred(tmp_path / "run", f"infer.input={puzzles(tmp_path / 'in.jsonl', True)}", "infer.vote=2")
    assert [row["voted"]["answers"] for row in rows] == [row["voted"]["answers"] for row in voted[0]]
    assert {row["voted"]["solved_with"] for row in rows} == {None} and set(rates) == {"pass_at_attempt_1"}


def test_each_answer_has_its_weight_and_a_program_that_gives_it(voted) -> None:
    rows, rates = voted
    known = {task.id: task for task in Arc().splits()["test"]}
    assert any(len(answers) == 2 for row in rows for answers in row["voted"]["answers"])
    for row in rows:
        assert tuple(row) == KEYS
        case = known[row["id"]].problem.cases[-1]
        (answers,) = row["voted"]["answers"]
        weights = [one["weight"] for one in answers]
        assert len(answers) <= 2 and weights == sorted(weights, reverse=True)
        for one in answers:
            assert one["weight"] == pytest.approx(one["votes"] + 1000 * one["shown_right"], abs=1e-3)
            space: dict = {}
            exec(one["program"], space)
            assert space["solve"](*deepcopy(case.args)) == one["output"]
        right = [place for place, one in enumerate(answers, 1) if one["output"] == case.expected]
        assert row["voted"]["solved_with"] == (right[0] if right else 0)
    solved = [row["voted"]["solved_with"] for row in rows]
    assert rates[FIRST].value == solved.count(1) / 6 and rates[TOP].value == sum(map(bool, solved)) / 6 > 0


def test_without_a_vote_the_row_says_so_and_is_the_same(voted, tmp_path: Path) -> None:
    rows, rates = inferred(tmp_path / "run", f"infer.input={puzzles(tmp_path / 'in.jsonl', False)}")
    assert rows == [row | {"voted": None} for row in voted[0]] and set(rates) == {"pass_at_attempt_1"}


@pytest.mark.slow
def test_answers_of_a_vote_go_on_where_they_stopped(voted, tmp_path: Path) -> None:
    words = [f"infer.input={puzzles(tmp_path / 'in.jsonl', False)}", "infer.vote=2"]
    out = tmp_path / "out.jsonl"
    lines = [json.dumps(row) + "\n" for row in voted[0]]
    context = RunContext(tmp_path / "run", lambda event: None)
    context.directory.mkdir()
    manifest.begin(context.directory, "infer", 0, [], "")
    start = ["+stage=infer", *SAMPLED, *words, f"infer.output={out}"]
    infer.run(compose(start).config, context)
    assert out.read_text() == "".join(lines)
    out.write_text("".join(lines[:2]))
    found = infer.run(compose(start).config, context)
    assert out.read_text() == "".join(lines)
    assert found.metrics["system/answers_from_before"] == 2 and found.after == voted[1]
    with pytest.raises(InputError, match="another decoding"):
        infer.run(compose([*start, "infer.vote=1"]).config, context)


def test_a_row_that_holds_nothing_back_is_refused_by_its_id(tmp_path: Path) -> None:
    row = {"id": "add", "entry_point": "add", "cases": [{"args": [2, 3], "expected": 5}]}
    path = puzzles(tmp_path / "in.jsonl", hidden=True)
    path.write_text(path.read_text() + json.dumps(row) + "\n")
    with pytest.raises(InputError, match="(?s)infer.vote: programs vote on.*task 'add'"):
        inferred(tmp_path / "run", f"infer.input={path}", "infer.vote=2")
    assert not (tmp_path / "run" / "answers.jsonl").exists()


@pytest.mark.slow
def test_a_pipe_carries_voted_outputs_and_the_report_shows_them(tmp_path: Path) -> None:
    puzzles(tmp_path / "in.jsonl", hidden=True)
    words = ["+experiment=quick", "infer.input=in.jsonl", *SAMPLED, "infer.vote=2", "run.dir=run"]
    done = run_program(tmp_path, "+stage=infer", *words)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    outputs = [one["output"] for row in rows for answers in row["voted"]["answers"] for one in answers]
    page = (tmp_path / "run" / "report.html").read_text()
    assert rows and outputs and all(f"<td>{json.dumps(output)}</td>" in page for output in outputs)
    assert summary_of(tmp_path / "run")["after"].keys() == {"pass_at_attempt_1"}
