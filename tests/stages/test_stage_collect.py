"""+stage=collect through its command, and its trajectories as rows: no step is lost or doubled, every action is proved."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from endpoint import Endpoint, serving
from program import ENVIRONMENT, INTERPRETED, PROGRAM, json_rows
from thinning import thinned

from rlvr_exp.domains.edits.options import EditPrompt
from rlvr_exp.domains.edits.tasks import Edits

pytest.importorskip("ast_grep_py")
COLLECT = [*PROGRAM, "+stage=collect", "sandbox.workers=1", "collect.output=out.jsonl"]
GOLDS = ["collect.teacher=golds", "collect.tasks=16", "collect.batch_size=8"]


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*words], cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def golds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("golds")
    done = program(place, *COLLECT, *GOLDS, "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def test_golds_are_shown_rule_by_rule_until_done(golds: Path) -> None:
    rows = json_rows(golds / "out.jsonl")
    assert len(rows) == 16 == len({row["id"] for row in rows}) and {row["outcome"] for row in rows} == {"passed"}
    tasks = {task.id: task.inputs.row for task in Edits().splits()["train"]}
    for row in rows:
        steps, edit = row["steps"], tasks[row["task"]]
        rules = json.loads(edit.action)
        assert len(steps) == (len(rules) if isinstance(rules, list) else 1) + 1 and steps[-1]["action"] == "done"
        assert [step["before"] for step in steps] == [edit.before, *(step["after"] for step in steps[:-1])]
        assert steps[-1]["after"] == edit.after and row["instruction"] == edit.instruction
    summary = json.loads((golds / "run" / "summary.json").read_text())
    assert summary["after"]["collect_success"]["value"] == 1.0 and summary["metrics"]["collect/trajectories"] == 16


@pytest.mark.slow
def test_a_run_killed_on_the_way_goes_on_and_ends_with_the_same_bytes(golds: Path, tmp_path: Path) -> None:
    words = [*INTERPRETED, *COLLECT[len(PROGRAM) :], *GOLDS, "cache.enabled=false", "collect.batch_size=1"]
    first = subprocess.Popen(
        [*words, "run.dir=a"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True
    )
    out, limit = tmp_path / "out.jsonl", time.monotonic() + 120
    while time.monotonic() < limit and not (out.exists() and out.read_bytes().count(b"\n") > 2):
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    kept = out.read_bytes().count(b"\n")
    assert kept > 2
    done = program(tmp_path, *words, "run.dir=b")
    assert done.returncode == 0, done.stdout + done.stderr
    assert out.read_bytes() == (golds / "out.jsonl").read_bytes()


@pytest.mark.slow
def test_tasks_of_another_teacher_are_left_out(golds: Path, tmp_path: Path) -> None:
    done = program(tmp_path, *COLLECT, *GOLDS, "collect.skip=10", "collect.tasks=6", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json_rows(tmp_path / "out.jsonl") == json_rows(golds / "out.jsonl")[10:]


@pytest.mark.slow
def test_a_policy_teaches_what_it_samples_within_its_budget(tmp_path: Path) -> None:
    words = [*COLLECT, "collect.split=practice", "collect.tasks=4", "collect.samples=2", "collect.batch_size=2"]
    stopped = program(tmp_path, *words, "collect.max_tokens=1", "run.dir=a")
    assert stopped.returncode == 3 and "collect.max_tokens=1" in stopped.stdout + stopped.stderr
    assert len(json_rows(tmp_path / "out.jsonl")) == 2
    done = program(tmp_path, *words, "run.dir=b")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json_rows(tmp_path / "out.jsonl")
    assert [row["id"].split("#")[1] for row in rows] == ["0", "1"] * 4 and {row["teacher"] for row in rows} == {
        "policy"
    }
    assert all(step["tokens"] > 0 and step["answer"] for row in rows for step in row["steps"])
    other = program(tmp_path, *words, "seed=1", "run.dir=c")
    assert other.returncode == 2 and "was written with another seed" in other.stdout + other.stderr


@pytest.mark.parametrize(
    ("words", "found"),
    thinned(
        [
            (["collect.teacher=golds", "collect.samples=2"], "collect.samples: has no effect here"),
            (["collect.teacher=golds", "data.target=text"], "collect.teacher: no task has an action to show"),
            (["data=arc", "environment=single_turn"], "data: these tasks are not done in steps"),
            (["collect.split=nowhere"], "nowhere"),
            (["collect.teacher=golds", "collect.skip=12000"], "collect.skip: leaves out every task"),
            (["collect.max_cost=1"], "collect.max_cost: nothing has a price"),
            (["environment=single_turn"], "environment: shows no text that an action has made"),
        ]
    ),
)
def test_what_cannot_be_collected_is_refused(words, found, tmp_path: Path) -> None:
    done = program(tmp_path, *COLLECT, *words, "run.dir=run")
    assert done.returncode == 2 and found in done.stdout + done.stderr, done.stdout + done.stderr


def test_steps_become_rows_where_ast_grep_proves_them(golds: Path, tmp_path: Path) -> None:
    good = json_rows(golds / "out.jsonl")
    wrong = good[0] | {"id": "w#0", "outcome": "failed"}
    no_json = good[1] | {"id": "n#0", "instruction": "other", "steps": [good[1]["steps"][0] | {"action": "no rule"}]}
    lies = good[2] | {"id": "l#0", "instruction": "other", "steps": [good[2]["steps"][0] | {"after": "x = 1\n"}]}
    idle_step = good[3]["steps"][-1] | {"action": '{"pattern": "nobody_writes_this_name", "rewrite": "x"}'}
    idle = good[3] | {"id": "i#0", "instruction": "other", "steps": [idle_step]}
    lines = [*map(json.dumps, [*good, wrong, no_json, lies, idle, good[3]]), "{broken"]
    (tmp_path / "given.jsonl").write_text("\n".join(lines) + "\n")
    words = ["+stage=prepare", "prepare=trajectories", "prepare.path=given.jsonl", "prepare.output=rows"]
    done = program(tmp_path, *PROGRAM, *words, "prepare.dev_fraction=0.3", "sandbox.workers=1", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    kept = {split: json_rows(tmp_path / "rows" / split / "given.jsonl") for split in ("train", "dev")}
    assert sum(map(len, kept.values())) == sum(len(row["steps"]) for row in good)
    tasks = [{row["metadata"]["task"] for row in rows} for rows in kept.values()]
    assert tasks[0] and tasks[1] and not tasks[0] & tasks[1], "a task's steps stay together"
    page = (tmp_path / "rows" / "dropped.csv").read_text()
    reasons = [
        "does not end right",
        "its rules are no action",
        "ast-grep makes another text",
        "the same step",
        "not readable",
        "nothing changes",
    ]
    assert all(reason in page for reason in reasons), page
    shares = (tmp_path / "rows" / "stats.md").read_text()
    assert f"| 0, `done` | {len(good)} |" in shares, shares
    domain = Edits(path=str(tmp_path / "rows"))
    assert all(task.problem.teacher for tasks in domain.splits().values() for task in tasks) and not domain.left_out()


def test_steps_that_say_done_can_be_left_out(golds: Path, tmp_path: Path) -> None:
    words = ["+stage=prepare", "prepare=trajectories", f"prepare.path={golds / 'out.jsonl'}", "prepare.output=rows"]
    done = program(tmp_path, *PROGRAM, *words, "prepare.keep_done=false", "sandbox.workers=1", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    kept = [row for file in (tmp_path / "rows").rglob("*.jsonl") for row in json_rows(file)]
    assert len(kept) == sum(len(row["steps"]) - 1 for row in json_rows(golds / "out.jsonl"))
    assert all(row["before"] != row["after"] for row in kept)
    domain = Edits(path=str(tmp_path / "rows"))
    assert all(task.problem.teacher for tasks in domain.splits().values() for task in tasks) and not domain.left_out()


@pytest.mark.slow
def test_an_endpoint_teaches_too(tmp_path: Path) -> None:
    def answer(prompt: str, seed: object) -> str:
        return '{"pattern": "return $X", "rewrite": "return ($X)"}' if "return (" not in prompt else "done"

    words = [*COLLECT, "engine=server", "data.prompt.style=instruct", "collect.tasks=3", "collect.split=dev"]
    with serving(Endpoint(text=answer)) as endpoint:
        priced = [f"engine.url={endpoint.url}", "engine.prompt_price=1000", "engine.completion_price=1e6"]
        stopped = program(tmp_path, *words, *priced, "collect.max_cost=1e-3", "collect.batch_size=1", "run.dir=a")
        assert stopped.returncode == 3 and "collect.max_cost=0.001; 1 trajectories" in stopped.stdout + stopped.stderr
        done = program(tmp_path, *words, *priced, "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = json.loads((tmp_path / "run" / "summary.json").read_text())["metrics"]
    tokens = [metrics[f"system/engine_{kind}_tokens"] for kind in ("prompt", "completion")]
    assert metrics["system/engine_cost"] == pytest.approx(tokens[0] * 1e-3 + tokens[1]) and tokens[1] > 0
    rows = json_rows(tmp_path / "out.jsonl")
    assert len(rows) == 3 and {row["teacher"] for row in rows} == {"endpoint"}
    assert all(row["steps"][-1]["action"] == "done" for row in rows)
    assert any(len(row["steps"]) == 2 and "return (" in row["steps"][1]["before"] for row in rows)


@pytest.mark.slow
def test_thoughts_and_state_of_a_teacher_become_rows_that_imitation_shows(tmp_path: Path) -> None:
    def answer(prompt: str, seed: object) -> str:
        begun = "return (" in prompt
        action = "done" if begun else '{"pattern": "return $X", "rewrite": "return ($X)"}'
        update = "" if begun else "the result is in brackets"
        return (
            f"<think>\nIs it done?\n</think>\n<action>\n{action}\n</action>\n<state_update>\n{update}\n</state_update>"
        )

    words = [*COLLECT, "engine=server", "data.prompt.style=instruct", "data.prompt.answer=tags", "collect.tasks=3"]
    with serving(Endpoint(text=answer)) as endpoint:
        done = program(tmp_path, *words, f"engine.url={endpoint.url}", "collect.split=dev", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [step for row in json_rows(tmp_path / "out.jsonl") for step in row["steps"]]
    assert all(step["think"] == "Is it done?" for step in steps)
    last = next(step for step in steps if step.get("state"))
    assert last["state"] == "the result is in brackets" and last["action"] == "done" and "state_update" not in last
    rows = ["+stage=prepare", "prepare=trajectories", "prepare.path=out.jsonl", "prepare.output=rows"]
    made = program(tmp_path, *PROGRAM, *rows, "prepare.right_only=false", "sandbox.workers=1", "run.dir=made")
    assert made.returncode == 0, made.stdout + made.stderr
    domain = Edits(path=str(tmp_path / "rows"), prompt=EditPrompt(style="instruct", answer="tags"))
    tasks = [task for split in domain.splits().values() for task in split]
    golds = [domain.gold_completion(task) for task in tasks]
    assert tasks and all("<think>\nIs it done?\n</think>\n<action>" in str(gold) for gold in golds)
    assert any("<state>\nthe result is in brackets\n</state>" in domain.task_prompt(task) for task in tasks)
    assert any("<state_update>\nthe result is in brackets\n</state_update>" in str(gold) for gold in golds)


@pytest.mark.parametrize(
    ("fault", "rate", "code", "said"),
    [
        pytest.param("500", 1, 0, "6 trajectories were broken off without a verdict", marks=pytest.mark.slow),
        pytest.param("404", 0.1, 3, "it refused with 404", marks=pytest.mark.slow),
        *(
            pytest.param(fault, 0.1, 3, "completions were never answered", marks=pytest.mark.slow)
            for fault in ("500", "429", "cut", "nonsense")
        ),
    ],
)
def test_an_endpoint_that_breaks_ends_it_and_a_mended_one_goes_on_with_nothing_lost(
    fault, rate, code, said, tmp_path: Path
) -> None:
    key = "words-that-nobody-may-see"
    words = [*COLLECT, "engine=server", "engine.retries=1", "engine.backoff_s=0.01", "engine.api_key_env=SERVER_CODE"]
    words += ["collect.tasks=12", "collect.batch_size=3", "collect.split=dev", f"engine.max_unanswered_rate={rate}"]
    words += ["environment.steps=2"]
    environment = {**ENVIRONMENT, "SERVER_CODE": key}

    def run(url: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = [*words, f"engine.url={url}", *more]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    with serving(Endpoint(text=lambda prompt, seed: "done", key=key, faults=[""] * 6, always=fault)) as endpoint:
        broken = run(endpoint.url, "run.dir=a")
        kept = (tmp_path / "out.jsonl").read_bytes()
        endpoint.always = ""
        endpoint.faults[:] = [fault] * 2 if fault != "404" else []
        done = run(endpoint.url, "run.dir=b")
    assert broken.returncode == code and said in broken.stdout + broken.stderr, broken.stdout + broken.stderr
    assert kept.count(b"\n") == 6 and done.returncode == 0, done.stdout + done.stderr
    rows = json_rows(tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes().startswith(kept)
    assert len({row["id"] for row in rows}) == 12 == len(rows) and "no_verdict" not in {row["outcome"] for row in rows}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 9 and not [path for path in files if key.encode() in path.read_bytes()]
    assert key not in broken.stdout + broken.stderr + done.stdout + done.stderr
