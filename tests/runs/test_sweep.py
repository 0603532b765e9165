"""Sweeps: every job is checked before the first, each is a run of its own, a failed job does not stop the others; their record."""

import csv
import json
import signal
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import datetime
from io import StringIO
from itertools import permutations
from pathlib import Path

import pytest
from completions import completion
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from report_pages import HOSTILE, Page, log

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError, Interrupted
from rlvr_exp.core.files import write_json
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.runs.executors import Feed, Local
from rlvr_exp.runs.schedule import worst
from rlvr_exp.runs.sweep import (
    SweepJob,
    executor_apart,
    expand,
    job_directory,
    run_sweep,
    sweep_directories,
)

STAGE = "+stage=grpo"


def test_every_combination_is_a_job() -> None:
    jobs = expand([STAGE, "algorithm.group_size=4,8", "seed=range(0,2)", "optimizer.lr=1"])
    assert [job.swept for job in jobs] == [(f"algorithm.group_size={g}", f"seed={s}") for g in (4, 8) for s in (0, 1)]
    assert [(job.checked.config.algorithm.group_size, job.checked.config.seed) for job in jobs] == [
        (4, 0),
        (4, 1),
        (8, 0),
        (8, 1),
    ]
    assert all(job.checked.config.optimizer.lr == 1 for job in jobs)


def test_groups_are_swept_too() -> None:
    jobs = expand(["+stage=grpo,sft", "reward.terms.length.weight=0.0"][:1] + ["model=tiny,qwen14b"])
    assert {(job.checked.config.stage, job.checked.config.model.name) for job in jobs} == {
        ("grpo", ""),
        ("sft", ""),
        ("grpo", "Qwen/Qwen3-14B"),
        ("sft", "Qwen/Qwen3-14B"),
    }


def test_all_jobs_are_checked_and_each_mistake_is_told_once() -> None:
    with pytest.raises(InputError) as caught:
        expand([STAGE, "algorithm.group_size=4,1", "seed=0,x", "lrr=1", "a=["])
    assert sorted(problem.where for problem in caught.value.problems) == ["a=[", "algorithm.group_size", "lrr", "seed"]


def test_without_several_values_there_is_one_job() -> None:
    (job,) = expand([STAGE, "seed=1"])
    assert job.swept == () and job_directory(Path("root"), 0, job.swept) == Path("root/0")


@given(st.lists(st.text(min_size=1, max_size=30), max_size=4), st.integers(0, 99))
@settings(deadline=None)
def test_a_job_directory_can_be_named_in_an_override(words: list[str], index: int) -> None:
    directory = job_directory(Path("multirun/2026-01-02/03-04-05"), index, words)
    assert directory.parent == Path("multirun/2026-01-02/03-04-05") and len(directory.name) < 120
    parsed = OverridesParser.create().parse_override(f"compare.runs=[{directory},{directory}]")
    assert parsed.value() == [str(directory), str(directory)]


def jobs_of(*swept: tuple[str, ...]) -> list[SweepJob]:
    """Jobs whose configuration has the words about the run alone."""
    found = []
    for words in swept:
        run = [word for word in words if word.startswith("run.")]
        found.append(SweepJob((STAGE, *words), words, compose([STAGE, *run])))
    return found


def test_directories_of_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    now = datetime(2026, 1, 2, 3, 4, 5)

    def found(*chosen: str, more: tuple[str, ...] = ()) -> list[str]:
        words = [(f"seed={i}", *([f"run.dir={name}"] if name else []), *more) for i, name in enumerate(chosen)]
        jobs = [SweepJob(job.words, job.swept[:1], job.checked) for job in jobs_of(*words)]
        root, directories = sweep_directories(jobs, now)
        return [path.as_posix() for path in (root, *directories)]

    first = "multirun/2026-01-02/03-04-05"
    assert found("", "") == [first, *(f"{first}/{name}" for name in ("0_seed-0", "1_seed-1"))]
    assert found("", "")[1] == f"{first}_2/0_seed-0", "the first one is taken"
    assert found("all", "all") == ["all", "all/0_seed-0", "all/1_seed-1"]
    assert found("one", "two") == [f"{first}_3", "one", "two"]
    (tmp_path / "all" / "1_seed-1").mkdir(parents=True)
    (tmp_path / "all" / "1_seed-1" / "config.yaml").write_text("stage: grpo")
    with pytest.raises(InputError, match="holds another run"):
        found("all", "all")
    assert found("all", "all", more=("run.resume=auto",))[2] == "all/1_seed-1", "jobs that resume find their own"
    with pytest.raises(InputError, match="some jobs share it"):
        found("a", "a", "b")


def test_the_words_about_executors_are_those_of_the_sweep() -> None:
    words, executor = executor_apart([STAGE, "executor.jobs=3", "seed=0,1"])
    assert words == [STAGE, "seed=0,1"] and isinstance(executor, Local) and executor.jobs == 3
    of_studies = ["+stage=study", "study=ablation", "executor.jobs=3", "study.seeds=[0],[1]"]
    words, executor = executor_apart(of_studies)
    assert words == of_studies and executor.jobs == 1, "each study has its own"
    with pytest.raises(InputError, match=r"executor\.jobs"):
        executor_apart([STAGE, "executor.jobs=0"])


class Planted(Local):
    """In place of processes: each job's directory is as a function leaves it, which returns the exit code."""

    run_job: Callable[[Path], int]

    def run(self, feed: Feed, context: RunContext) -> None:
        while (found := feed.next()) is not None:
            name, command = found
            command.printed.parent.mkdir(parents=True, exist_ok=True)
            with open(command.printed, "a") as out:
                out.write(f"a line of {name}\n")
            feed.unwanted()
            code = self.run_job(Path(command.words[-1].removeprefix("run.dir=")))
            if code == 130 or context.interrupted:
                raise Interrupted("stopped")
            feed.ended(name, code)


def sweep(root: Path, swept: list[tuple[str, ...]], run_job: Callable[[Path], int], command: list[str]) -> int:
    executor = Planted(jobs=1)
    executor.run_job = run_job
    directories = [root / str(index) for index in range(len(swept))]
    return run_sweep(jobs_of(*swept), directories, root, executor, command)


SWEPT = [(f"algorithm.group_size={size}", f"seed={seed}") for size in (4, 8) for seed in (0, 1)]


def completed(directory: Path) -> int:
    """A run with reports, in which as many tasks pass as its number says, and two more."""
    directory.mkdir(parents=True)
    log(directory, steps=5)
    rates = {}
    for when, some in (("before", range(2)), ("after", range(int(directory.name) + 2))):
        verdicts = [
            EvalSample(completion(f"t{i}", "passed" if i in some else "rejected"), "greedy", "p") for i in range(10)
        ]
        rates[when] = {name: rate.to_dict() for name, rate in save(directory, when, verdicts).items()}
    write_json(directory / "summary.json", {"status": "completed", "steps": 5, "seconds": 2.5, **rates})
    return 0


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep whose jobs all completed, with the lines that it printed in `said`."""
    root = tmp_path_factory.mktemp("swept") / "sweep"
    with redirect_stdout(StringIO()) as said:
        code = sweep(root, SWEPT, completed, ["python", "a b"])
    assert code == 0
    (root / "said").write_text(said.getvalue())
    return root


def test_jobs_and_arms_are_written_with_their_intervals(swept):
    text = (swept / "said").read_text()
    study = json.loads((swept / "study.json").read_text())
    assert [one["directory"] for one in study["jobs"]] == list("0123") and study["command"] == ["python", "a b"]
    assert [(arm["name"], arm["seeds"]) for arm in study["arms"]] == [
        (f"algorithm.group_size={size}", ["0", "1"]) for size in (4, 8)
    ]
    jobs, arms = rows_of(swept / "jobs.csv"), rows_of(swept / "arms.csv")
    assert [(row["algorithm.group_size"], row["seed"], row["after/pass_at_1_greedy"]) for row in jobs] == [
        ("4", "0", "0.2"), ("4", "1", "0.3"), ("8", "0", "0.4"), ("8", "1", "0.5")
    ]  # fmt: skip
    assert [float(row["after/pass_at_1_greedy"]) for row in arms] == [0.25, 0.45]
    assert float(arms[1]["against_first/pass_at_1_greedy"]) == pytest.approx(0.2)
    assert float(arms[1]["against_first/pass_at_1_greedy/ratio"]) == pytest.approx(0.45 / 0.25)
    assert float(arms[1]["after/pass_at_1_greedy/iqm/low"]) < float(arms[1]["after/pass_at_1_greedy/iqm"])
    assert float(arms[0]["after/pass_at_1_greedy/low"]) < 0.25 < float(arms[0]["after/pass_at_1_greedy/high"])
    assert "seeds 20.0 to 30.0" in text
    (found,) = study["arms"][1]["findings"].values()
    assert (
        found.startswith("no difference between algorithm.group_size=8 and algorithm.group_size=4 was found")
        and found in text
    )


def test_the_page_links_to_its_runs_and_draws_the_arms(swept):
    page = Page((swept / "study.html").read_text())
    assert [named["href"] for tag, named in page.tags if tag == "a"] == [f"{i}/report.html" for i in range(4)]
    assert ("b", "25.0%") in page.texts and ("th", "against algorithm.group_size=4") in page.texts
    assert any(tag == "li" and words.startswith("no difference between") for tag, words in page.texts)
    cells = [named["data-label"] for tag, named in page.tags if tag == "td" and "data-label" in named]
    assert cells[:3] == ["seeds, lowest to highest", "before", "after"], "a phone shows no heads"
    assert list(page.charts["Reward, all runs"]["series"]) == ["algorithm.group_size=4", "algorithm.group_size=8"]


def test_a_failed_job_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ends = {"1": (2, "failed"), "2": (3, "stopped"), "3": (1, "completed")}

    def run_job(directory: Path) -> int:
        code, status = ends.get(directory.name, (completed(directory) if directory.name == "0" else 0, ""))
        if status and code != 2:
            directory.mkdir()
            write_json(directory / "summary.json", {"status": status, "diagnosis": HOSTILE})
        return code

    hostile = [*SWEPT[:1], ("data.path=" + HOSTILE,), *SWEPT[2:]]
    assert sweep(tmp_path, hostile, run_job, [HOSTILE]) == 1
    said = capsys.readouterr().out
    table = said[said.index("\njob ") + 1 :].splitlines()
    codes = [[row[-4:] for row in line.split("  ") if row.strip()][1:3] for line in table[1:5]]
    assert [code.strip() for _, code in codes] == ["0", "2", "3", "1"], "a missing report is no completed job"
    assert "20.0%" in table[1] and f"table of the sweep: {tmp_path / 'study.html'}" in said
    assert "a line of 0_" in said and (tmp_path / "printed").is_dir()
    study = json.loads((tmp_path / "study.json").read_text())
    assert [one["exit"] for one in study["jobs"]] == [0, 2, 3, 1] and study["jobs"][1]["after"] == {}
    page = Page((tmp_path / "study.html").read_text())
    assert sum(tag == "script" for tag, _ in page.tags) == 1 and not [1 for tag, _ in page.tags if tag == "img"]


def test_an_interrupted_job_ends_the_sweep_whose_table_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_job(directory: Path) -> int:
        return completed(directory) if directory.name == "0" else 130

    assert sweep(tmp_path, SWEPT, run_job, []) == 130
    assert "2 jobs were not started" in capsys.readouterr().out
    jobs = json.loads((tmp_path / "study.json").read_text())["jobs"]
    assert [(job["exit"], job["status"]) for job in jobs] == [(0, "completed"), (130, "interrupted")]


def test_a_signal_stops_a_sweep_as_an_interrupted_job_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run_job(directory: Path) -> int:
        signal.raise_signal(signal.SIGTERM)
        return 0

    before = signal.getsignal(signal.SIGTERM)
    assert sweep(tmp_path, SWEPT, run_job, []) == 130 and signal.getsignal(signal.SIGTERM) is before
    assert "stopping after the jobs have saved" in capsys.readouterr().err


def test_a_record_that_cannot_be_written_is_a_fault_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlvr_exp.runs.sweep.write_record", lambda *_: str(1 / 0))
    assert sweep(tmp_path, SWEPT[:1], completed, []) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_without_a_sweep_over_options_there_is_one_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(tmp_path, [(f"seed={i}", f"run.dir={tmp_path}/{i}") for i in range(4)], completed, []) == 0
    assert "| all " in capsys.readouterr().out


def test_the_worst_code_is_the_sweeps() -> None:
    for codes in permutations((0, 2, 3, 1)):
        assert [worst(codes[:count]) for count in range(1, 5)] == [
            next(code for code in (1, 3, 2, 0) if code in codes[:count]) for count in range(1, 5)
        ]
    assert worst([]) == 0
