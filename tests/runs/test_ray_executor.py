"""The executor of Ray on a real cluster: a job whose node is killed resumes exactly, also if its node shares no files."""

import filecmp
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planted import Fed
from ray_clusters import Cluster, cluster, needs_ray

from rlvr_exp.config.study import Ray as Options
from rlvr_exp.core.errors import InputError, Interrupted
from rlvr_exp.records.context import RunContext
from rlvr_exp.runs.executors import Command, Local
from rlvr_exp.runs.ray_executor import Keeper, Ray, files_below

ROOT = Path(__file__).parents[2]
STEPS = 14
TRAINING = (
    *("+stage=grpo", "+experiment=quick", f"algorithm.max_steps={STEPS}", "run.checkpoint.every_steps=1", "seed=3"),
    *("evaluation.tasks=2", "evaluation.samples=2", "evaluation.greedy=false", "parallel.threads=1"),
)
TAKES_TIME = ("time/", "system/")


def test_resources_without_an_amount_are_refused() -> None:
    found = Options(resources={"fast": 0, "CPU": 2}).problems()
    assert [(one.where, one.what) for one in found] == [
        ("resources", "no amount"),
        ("resources", "has an option of its own"),
    ]


def test_a_later_attempt_supersedes_an_earlier_one(tmp_path: Path) -> None:
    keeper = Keeper(str(tmp_path))
    assert [keeper.begin("a"), keeper.begin("a")] == [1, 2]
    assert [keeper.state("a", 1), keeper.state("a", 2)] == ["kill", "run"]
    with pytest.raises(RuntimeError, match="another node"):
        keeper.write("a", 1, "run/x", 0, b"late", True)
    keeper.write("a", 2, "run/x", 0, b"two ", False)
    assert files_below(tmp_path) == {}, "an unfinished file is not seen"
    keeper.write("a", 2, "run/x", 4, b"parts", True)
    keeper.write("a", 2, "run/old/y", 0, b"", True)
    keeper.link("a", 2, "run/latest", "x")
    keeper.remove_others("a", 2, "run", ["run/x", "run/latest"])
    assert (tmp_path / "run/latest").read_bytes() == b"two parts" and not (tmp_path / "run/old").exists()
    assert keeper.stop("a") and keeper.state("a", 2) == "stop"
    assert not keeper.stop("b") and keeper.begin("b") == 0
    keeper.abandon()
    assert keeper.state("a", 2) == "kill" and keeper.begin("c") == 0


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    """A head without a CPU for jobs, so that they run on nodes that can be killed."""
    with cluster(1, head_cpus=0) as made:
        yield made


def training(root: Path, feed: Fed) -> Path:
    run = root / "run"
    feed.waiting = {"one": Command((*TRAINING, f"run.dir={run}"), root / "one.txt")}
    return run


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the local executor."""
    root = tmp_path_factory.mktemp("local")
    feed = Fed(root)
    run = training(root, feed)
    Local(jobs=1).run(feed, RunContext(root, lambda _: None))
    assert feed.events[-1] == ("one", 0), (root / "one.txt").read_text()
    return run


def rows(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if not key.startswith(TAKES_TIME)} for line in lines]


def with_a_killed_node(made: Cluster, root: Path) -> Path:
    """Train on the last node, kill it after the first checkpoint has arrived, and go on on a new one."""
    feed, notes = Fed(root), list[Any]()
    run = training(root, feed)
    killed = []

    def unwanted() -> list[str]:
        if not killed and any((run / "checkpoints").glob("step_*")):
            killed.append(time.monotonic())
            made.kill(len(made.nodes) - 1)
            made.add(f"--address={made.address}", before=made.before)
        return []

    feed.unwanted = unwanted  # type: ignore[method-assign]
    Ray(jobs=1, address=made.address).run(feed, RunContext(root, notes.append))
    assert killed and feed.events == [("one", None), ("one", 0)], (root / "one.txt").read_text()
    assert any(made.address.rpartition(":")[2] in one.get("text", "") for one in notes)
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["resumed"], "the second attempt resumed"
    return run


def assert_equal(run: Path, undisturbed: Path) -> None:
    assert rows(run) == rows(undisturbed)
    weights = f"checkpoints/step_{STEPS:06d}/model.safetensors"
    assert filecmp.cmp(run / weights, undisturbed / weights, shallow=False)
    summaries = [json.loads((one / "summary.json").read_text()) for one in (run, undisturbed)]
    assert summaries[0]["after"] == summaries[1]["after"] and summaries[0]["status"] == "completed"


@needs_ray
@pytest.mark.slow
@pytest.mark.heavy
def test_a_job_whose_node_is_killed_resumes_exactly(two: Cluster, tmp_path: Path, undisturbed: Path) -> None:
    two.before = []
    two.add(f"--address={two.address}")
    try:
        assert_equal(with_a_killed_node(two, tmp_path), undisturbed)
    finally:
        two.kill(len(two.nodes) - 1)


@needs_ray
@pytest.mark.slow
@pytest.mark.heavy
def test_a_node_without_the_study_s_files_sends_the_run_and_its_checkpoints(
    two: Cluster, tmp_path: Path, undisturbed: Path
) -> None:
    """The node sees an empty folder in place of the study's."""
    two.before = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none {tmp_path} && exec "$@"', "sh"]
    if subprocess.run([*two.before, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs a mount namespace")
    two.add(f"--address={two.address}", before=two.before)
    try:
        run = with_a_killed_node(two, tmp_path)
    finally:
        two.kill(len(two.nodes) - 1)
    assert_equal(run, undisturbed)
    assert str(tmp_path) not in (run / "config.yaml").read_text(), "the run worked in a folder of its node"
    names = [{path for path in files_below(one) if "log" not in path} for one in (run, undisturbed)]
    assert names[0] == names[1]
    assert not list(tmp_path.rglob(".*"))


@needs_ray
@pytest.mark.slow
@pytest.mark.heavy
def test_a_request_to_stop_lets_the_job_save_and_drops_one_that_waits(two: Cluster, tmp_path: Path) -> None:
    context = RunContext(tmp_path, lambda _: None)
    feed = Fed(tmp_path)
    run = training(tmp_path, feed)
    long = tuple("algorithm.max_steps=200" if word.startswith("algorithm.max_steps") else word for word in TRAINING)
    feed.waiting = {"one": Command((*long, f"run.dir={run}"), tmp_path / "one.txt")}

    def unwanted() -> list[str]:
        if ("two", None) in feed.events:
            context.interrupted = True
        elif (run / "checkpoints" / "latest").exists():  # It takes the only CPU.
            feed.waiting["two"] = Command(("--version",), tmp_path / "two.txt")
        return []

    feed.unwanted = unwanted  # type: ignore[method-assign]
    two.add(f"--address={two.address}")
    try:
        with pytest.raises(Interrupted):
            Ray(jobs=2, address=two.address).run(feed, context)
    finally:
        two.kill(len(two.nodes) - 1)
    assert json.loads((run / "summary.json").read_text())["status"] == "interrupted"
    assert not (tmp_path / "two.txt").exists()


@needs_ray
@pytest.mark.slow
@pytest.mark.heavy
def test_resources_that_no_node_has_are_refused(two: Cluster, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no node of the cluster has so much") as refused:
        Ray(jobs=1, address=two.address, num_gpus=8).run(Fed(tmp_path), RunContext(tmp_path, lambda _: None))
    assert "GPU 8" in str(refused.value)


@needs_ray
@pytest.mark.slow
@pytest.mark.heavy
def test_a_complete_study_answers_as_on_this_machine_although_a_node_is_killed(two: Cluster, tmp_path: Path) -> None:
    words = ["+stage=study", "study=ablation", "+experiment=quick", "study.seeds=[0]"]
    start = [sys.executable, "-m", "rlvr_exp", *words]
    two.before = []
    two.add(f"--address={two.address}")
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path])), "OMP_NUM_THREADS": "1"}
    with open(tmp_path / "said.txt", "w") as out:
        given = {"cwd": tmp_path, "env": paths, "stdout": out, "stderr": out}
        run = subprocess.Popen(
            [*start, "executor=ray", f"executor.address={two.address}", "executor.jobs=1", "run.dir=ray"], **given
        )
        try:
            while not any((tmp_path / "ray").rglob("checkpoints/latest")):
                assert run.poll() is None, (tmp_path / "said.txt").read_text()[-4000:]
                time.sleep(0.1)
            two.kill(len(two.nodes) - 1)
            two.add(f"--address={two.address}")
            assert run.wait(900) == 0, (tmp_path / "said.txt").read_text()[-4000:]
        finally:
            run.kill()
            two.kill(len(two.nodes) - 1)
        subprocess.run([*start, "executor.jobs=1", "run.dir=local"], **given, check=True, timeout=900)
    ours, local = (json.loads((tmp_path / name / "study.json").read_text()) for name in ("ray", "local"))
    assert [(job["arm"], job["seed"], job["status"]) for job in ours["jobs"]] == [
        (job["arm"], job["seed"], job["status"]) for job in local["jobs"]
    ]
    assert ours["tables"] == local["tables"] and ours["answer"] == local["answer"]
