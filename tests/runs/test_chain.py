"""+stage=chain: links run one after the other with what those before them left, and go on after a kill."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from program import ENVIRONMENT, INTERPRETED, PROGRAM
from report_pages import Page, evaluation

from rlvr_exp.config.compose import compose
from rlvr_exp.config.study import Links
from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.saved import save
from rlvr_exp.report.page import as_html
from rlvr_exp.runs.chain import chain_plan, links_of, page
from rlvr_exp.stages.shared.start import start_problems

pytest.importorskip("ast_grep_py")
MINE = """
_target_: rlvr_exp.runs.chain.run_links
links:
  steps: [+stage=collect, collect.teacher=golds, collect.tasks=TASKS, collect.batch_size=1, "collect.output={chain}/steps.jsonl"]
  rows: [+stage=prepare, prepare=trajectories, "prepare.path={chain}/steps.jsonl", "prepare.output={chain}/rows"]
words: [sandbox.workers=1]
"""
TRAINED = """
_target_: rlvr_exp.runs.chain.run_links
links:
  sft: [+stage=sft]
  grpo: [+stage=grpo, "model.path={sft}/checkpoints/best"]
words: [run.select.every_steps=0, run.select.times=0]
"""
MEASURED = """
_target_: rlvr_exp.runs.chain.run_links
links:
  before: [+stage=evaluate]
  after: [+stage=evaluate, evaluation.temperature=0.5, "evaluate.baseline={before}"]
"""


def own(place: Path, text: str, tasks: int = 6) -> list[str]:
    (place / "conf" / "chain").mkdir(parents=True, exist_ok=True)
    (place / "conf" / "chain" / "mine.yaml").write_text(text.replace("TASKS", str(tasks)))
    return ["+stage=chain", "chain=mine", "hydra.searchpath=[conf]", "run.dir=run"]


def program(place: Path, *words: str, start=PROGRAM) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*start, *words], cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def test_the_plan_of_a_chain_names_memory_time_and_what_is_to_be_fetched(tmp_path: Path) -> None:
    words = ["parallel.device=rtx5090", "model=qwen_coder_1_5b", "model.max_prompt_tokens=384", "data=answers"]
    plan = chain_plan(
        compose(["+stage=chain", "chain=smollm2_tools", f"run.dir={tmp_path}", f"chain.policy={words}"]).config
    )
    parts = plan.split("\n\n")
    assert [part.partition(":")[0] for part in parts[1:5]] == ["01_sft", "02_with", "03_without", "04_compared"]
    assert all("GiB (" in part and "time: about" in part for part in parts[1:4]) and "memory" not in parts[4]
    # The second link continues the adapter that the first will have made.
    assert "backward): fits" in parts[2] and parts[2].count("GiB") == 1
    assert parts[5].startswith(
        "to fetch: Qwen/Qwen2.5-Coder-1.5B-Instruct: python -m rlvr_exp +stage=prepare prepare=hub"
    )
    assert parts[5].count("to fetch") == 1 and "of training and measurement in all" in parts[5]


def test_words_of_a_stage_come_last_and_concern_its_links_alone(tmp_path: Path) -> None:
    links = Links(
        links={"first": ["+stage=sft", "seed=1"], "second": ["+stage=evaluate"]},
        path="sets",
        policy=["model=tiny"],
        stages={"sft": ["algorithm.max_steps=3", "data.path={path}/rows", "evaluation.remember={chain}/kept"]},
    )
    first, second = links_of(links, tmp_path)
    filled = ("data.path=sets/rows", f"evaluation.remember={tmp_path}/kept")
    assert first.words == ("+stage=sft", "seed=1", "model=tiny", "algorithm.max_steps=3", *filled)
    assert second.words == ("+stage=evaluate", "model=tiny")
    assert not links.problems()
    links.stages = {"srl": []}
    assert [problem.where for problem in links.problems()] == ["stages"]
    links.stages, links.words = {}, ["data.path={first}/rows"]
    (problem,) = links.problems()
    assert problem.where == "words" and problem.got == "first", "such words name no run"


@pytest.mark.slow
def test_each_link_is_a_run_that_reads_what_those_before_it_wrote(tmp_path: Path) -> None:
    done = program(tmp_path, *own(tmp_path, MINE))
    assert done.returncode == 0, done.stdout + done.stderr
    run = tmp_path / "run"
    links = json.loads((run / "chain.json").read_text())["links"]
    assert [(one["name"], one["directory"], one["summary"]["status"]) for one in links] == [
        ("steps", "01_steps", "completed"),
        ("rows", "02_rows", "completed"),
    ]
    assert all((run / one["directory"] / "report.html").is_file() for one in links)
    rows = [json.loads(line) for file in (run / "rows").rglob("*.jsonl") for line in file.read_text().splitlines()]
    steps = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    assert len(steps) == 6 and len(rows) == sum(len(one["steps"]) for one in steps)
    shown, report = (run / "chain.md").read_text(), (run / "report.html").read_text()
    assert "| steps | completed |" in shown and "| rows | " in shown and f"{len(rows)} records" in shown
    assert "| steps | collect.teacher | golds | policy |" in shown and "run.resume" not in shown
    assert '<a href="01_steps/report.html">' in report and "collect.teacher" in report


def test_the_page_keeps_what_a_person_wrote_and_names_checkpoints(tmp_path: Path) -> None:
    rate = {"value": 0.5, "low": 0.25, "high": 0.75, "n": 8}
    summary = {
        "stage": "sft",
        "status": "completed",
        "seconds": 3.2,
        "steps": 4,
        "before": {},
        "after": {"pass_at_1": rate},
    }
    link = {"name": "one", "directory": "01_one", "command": "python -m rlvr_exp +stage=sft", "summary": summary}
    folder = tmp_path / "01_one"
    (folder / "checkpoints" / "step_000004").mkdir(parents=True)
    (folder / "checkpoints" / "latest").symlink_to("step_000004")
    (folder / "config.yaml").write_text("stage: sft\nalgorithm: {max_steps: 4}\ndata: {path: rows}\n")
    (folder / "manifest.json").write_text('{"data": {"train": {"tasks": 1200}, "dev": {"tasks": 7}}}')
    first = page(tmp_path, [link])
    assert (
        "| one | rows | 1,200 train, 7 dev |" in first
        and "| one | pass_at_1 |  | 50.0% [25.0%, 75.0%], 8 tasks |" in first
    )
    assert "| one |  | 01_one/checkpoints/step_000004 |" in first and "Write what you learned" in first
    written = first.replace("What was learned", "Rules were learned, what was learned")
    assert page(tmp_path, [link], written) == written and page(tmp_path, [link], first) == first


def test_the_page_begins_with_rates_and_with_the_paired_changes_between_links_of_the_same_tasks(tmp_path: Path) -> None:
    links = []
    for name, passing in {"base": range(4), "other": None, "trained": range(2, 8)}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.yaml").write_text("stage: evaluate\n")
        answers = evaluation(passing or range(4), "after")
        rates = save(folder, "after", answers if passing else answers[:9])
        after = {metric: rate.to_dict() for metric, rate in rates.items()}
        summary = {"stage": "evaluate", "status": "completed", "seconds": 1.0, "steps": 0, "before": {}, "after": after}
        links.append({"name": name, "directory": name, "command": "python -m rlvr_exp", "summary": summary})
    shown = page(tmp_path, links)
    changes = [line for line in shown.splitlines() if line.startswith("| base | trained |")]
    assert (
        "| base | trained | pass_at_1 | +16.7 points [-28.9, +62.3], 4 won, 2 lost |" in changes and len(changes) == 3
    )
    assert "| base | other |" not in shown, "other tasks"
    titles = [line for line in shown.splitlines() if line.startswith("## ")]
    assert titles[:3] == ["## Rates", "## Paired changes between links", "## Links"]
    folded = Page(as_html("# Chain\n\nTwo.\n\n## Links\n\n| a |\n| - |\n| b |\n\n## Commands\n\n    python\n"))
    assert [text for tag, text in folded.texts if tag in ("h3", "summary")] == ["Links", "Commands"]


def test_links_that_need_a_path_join_where_one_is_given_and_policies_have_words_of_their_own(tmp_path: Path) -> None:
    links = {
        "rows": ["+stage=prepare", "prepare.path={chain}"],
        "before": ["+stage=evaluate", "data.path={path}"],
        "after": ["+stage=evaluate", "evaluate.baseline={rows}"],
    }
    with_path = Links(links=links, path="/data", policy=["model=mine"], words=["seed=1"])
    assert [command.words for command in links_of(with_path, tmp_path)] == [
        ("+stage=prepare", f"prepare.path={tmp_path}", "seed=1"),
        ("+stage=evaluate", "data.path=/data", "model=mine", "seed=1"),
        ("+stage=evaluate", f"evaluate.baseline={tmp_path}/01_rows", "model=mine", "seed=1"),
    ]
    without = Links(links=links)
    assert [(job.name, place.name) for job, place in links_of(without, tmp_path).items()] == [
        ("rows", "01_rows"),
        ("after", "02_after"),
    ]
    assert not with_path.problems() and not without.problems()
    own = {"canitedit": ["+stage=evaluate", "+experiment=canitedit_actions", "data.path={path}"]}
    (joined,) = links_of(Links(links=own, path="/data", words=["+experiment=quick"]), tmp_path)
    assert joined.words == ("+stage=evaluate", "data.path=/data", "+experiment=[canitedit_actions,quick]")
    asks = {"served": ["+stage=collect", "engine=server"]}
    served = Links(links=links | asks, policy=["model=mine"], endpoint=["engine.url=http://localhost/v1"])
    assert [*links_of(served, tmp_path)][-1].words == (*asks["served"], "engine.url=http://localhost/v1")
    assert not served.problems() and "served" not in Links(links=served.links).runs
    (gone,) = Links(links=links | {"after": ["+stage=evaluate", "evaluate.baseline={before}"]}).problems()
    assert gone.remedy == "chain.path=DIR"


@pytest.mark.slow
def test_a_chain_that_was_killed_goes_on_in_its_link(tmp_path: Path) -> None:
    words = own(tmp_path, MINE, tasks=60)
    first = subprocess.Popen(
        [*INTERPRETED, *words], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True
    )
    out, limit = tmp_path / "run" / "steps.jsonl", time.monotonic() + 200
    while time.monotonic() < limit and not (out.exists() and out.read_bytes().count(b"\n") > 2):
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    time.sleep(2)
    kept = out.read_bytes()
    assert 2 < kept.count(b"\n") < 60
    done = program(tmp_path, *words, "run.resume=auto", start=INTERPRETED)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = out.read_bytes()
    assert rows.startswith(kept[: kept.rfind(b"\n") + 1]) and rows.count(b"\n") == 60
    again = program(tmp_path, *words, "run.resume=auto")
    assert again.returncode == 0 and "steps: completed already" in again.stdout
    own(tmp_path, MINE.replace('"prepare.path', 'prepare.dev_fraction=0.5, "prepare.path'), tasks=60)
    other = program(tmp_path, *words, "run.resume=auto")
    assert other.returncode == 2 and "rm -r run/02_rows" in other.stdout + other.stderr
    shutil.rmtree(tmp_path / "run" / "02_rows")
    changed = program(tmp_path, *words, "run.resume=auto")
    assert changed.returncode == 0 and "steps: completed already" in changed.stdout, changed.stdout + changed.stderr


def test_a_chain_asks_to_remove_the_results_of_changed_links_and_those_that_depend_on_them(
    tmp_path: Path,
) -> None:
    links = {
        "rows": ["+stage=prepare", "prepare=dafny_usable", "prepare.path=x", "prepare.output={chain}/rows.jsonl"],
        "sft": ["+stage=sft", "data=dafny", "role=annotator", "data.path={chain}/rows.jsonl"],
        "other": ["+stage=evaluate"],
        "both": ["+stage=compare", "compare.runs=[{sft},{other}]"],
    }
    for job, directory in links_of(Links(links=links), tmp_path).items():
        (directory / "checkpoints" / "step_000002").mkdir(parents=True)
        (directory / "summary.json").write_text('{"status": "completed", "seconds": 1, "reason": null}')
        directory.with_suffix(".json").write_text(json.dumps(job.words))
    config = compose(["+stage=chain", "chain=smollm2_mbpp", "chain.path=x"]).config
    config.chain, config.run.dir = Links(links=links), str(tmp_path)
    assert chain_plan(config).count("completed already") == 4
    links["rows"].append("sandbox.workers=3")
    with pytest.raises(InputError) as refused:
        chain_plan(config)
    found = {problem.where: problem for problem in refused.value.problems}
    assert [*found] == [f"chain.links.{name}" for name in ("rows", "sft", "both")]
    assert (
        found["chain.links.rows"].allowed == "sandbox.workers=3" and "depend on rows" in found["chain.links.sft"].what
    )
    for number, name in enumerate(("rows", "sft", "both")):
        shutil.rmtree(tmp_path / f"{(1, 2, 4)[number]:02d}_{name}")
    assert chain_plan(config).count("completed already") == 1


def test_a_chain_goes_on_although_a_link_that_a_later_one_reads_has_not_ended(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run" / "01_first").mkdir(parents=True)
    (tmp_path / "run" / "01_first" / "config.yaml").write_text("stage: evaluate\n")
    text = (
        MINE.partition("links:")[0] + 'links: {first: [+stage=evaluate], both: [+stage=compare, "compare.runs=RUNS"]}'
    )
    for other, problems in (("{first}", 0), (tmp_path, 1)):
        words = own(tmp_path, text.replace("RUNS", f"[{other},{{first}}]"))
        found = [*start_problems(compose([*words, "run.resume=auto"]).config, fetchable=False)]
        assert len(found) == problems, found
        assert all(one.what == "no run is there" and "links.both" in one.where for one in found), found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (MINE.replace("{chain}/rows", "{later}/rows"), "names no earlier run"),
        (MINE.replace("+stage=prepare, ", ""), "names no stage"),
        (MINE.replace("collect.teacher=golds", "collect.teacher=nobody"), "chain.links.steps: collect.teacher"),
        (MINE.replace("collect.teacher=golds", "collect.teacher=golds, run.dir=x"), "the chain says itself"),
        (MEASURED, "chain.links.after: evaluate.baseline: evaluation.temperature differs"),
        (TRAINED, "chain.links.grpo: model.path: sft keeps no best checkpoint"),
        (MINE.replace("{chain}/rows", "{path}/rows").replace("{chain}/steps", "{path}/steps"), "chain.path=DIR"),
    ],
)
def test_a_link_that_cannot_work_is_told_before_any_is_run(text: str, found: str, tmp_path: Path) -> None:
    done = program(tmp_path, *own(tmp_path, text))
    assert done.returncode == 2 and found in done.stdout + done.stderr, done.stdout + done.stderr
    assert not (tmp_path / "run" / "steps.jsonl").exists()


@pytest.mark.slow
def test_a_link_that_fails_ends_the_chain_with_its_code(tmp_path: Path) -> None:
    done = program(tmp_path, *own(tmp_path, MINE.replace('{chain}/steps.jsonl", "prep', '{chain}/other.jsonl", "prep')))
    assert done.returncode == 2 and "chain.links.rows" in done.stdout + done.stderr
    assert json.loads((tmp_path / "run" / "chain.json").read_text())["links"][0]["name"] == "steps"
