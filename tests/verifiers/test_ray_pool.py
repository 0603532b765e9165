"""`verifier.pool=ray` on a real cluster of three raylets: verdicts equal those of this machine, and a killed node loses none."""

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace

import pytest
from ray_clusters import Cluster, cluster, needs_ray

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.ray_cluster import join_cluster
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.python_io import PythonIO

VERDICTS = 10_000


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with cluster(3) as made:
        yield made


def requests(count: int) -> list[Request]:
    """Distinct candidates: right, wrong, raising, out of time, not a program."""
    problem = PythonProblem("f", (Case((2,), 4), Case((3,), 9)))
    bodies = ("x * x", "x * x", "x * x + 1", "x * x", "1 // 0", "x * x", "x * x if x == 2 else None", "x * x", "x x")
    return [
        Request(problem, Candidate(f"def f(x):\n    return {bodies[index % len(bodies)]}  # {index}\n"))
        for index in range(count)
    ]


def until(holds: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def compared(verdict: Verdict) -> Verdict:
    return replace(verdict, seconds=0.0)


@needs_ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:10001", "head"])
def test_no_cluster_at_an_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match=r"verifier.address: no cluster answers") as refused:
        join_cluster("verifier.address", address)
    assert address in str(refused.value)


@needs_ray
@pytest.mark.slow
@pytest.mark.heavy
def test_a_node_that_isolates_less_is_named_and_not_used(three: Cluster) -> None:
    """The node may not make user namespaces."""
    before = ["unshare", "-U", "-r", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"', "sh"]
    if subprocess.run([*before, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs a user namespace")
    three.add(f"--address={three.address}", before=before)
    try:
        with PythonIO(Sandbox(workers=1), pool="ray", address=three.address) as verifier:
            assert verifier.isolation()["level"] in ("strict", "namespaces")
            with pytest.warns(RuntimeWarning, match=r"judges differently: .*level .* instead of .*it is not used"):
                verifier.nodes()
                until(lambda: len(verifier.ray_pool()._refused) == 1)
            until(lambda: len(verifier.nodes()) == 3)
            assert {verdict.outcome for verdict in verifier.verify(requests(200))} == {"passed", "failed"}
    finally:
        three.kill(3)


@needs_ray
@pytest.mark.slow
@pytest.mark.heavy
def test_a_request_that_loses_two_judges_has_no_verdict(three: Cluster) -> None:
    import ray

    endless = Request(requests(1)[0].problem, Candidate("def f(x):\n    while True:\n        pass\n"))
    with PythonIO(Sandbox(workers=1, cpu_s=100, wall_s=100), pool="ray", address=three.address) as verifier:
        with pytest.warns(RuntimeWarning, match="is lost"):
            answer = verifier.submit(endless)
            pool = verifier.ray_pool()
            lost: list[object] = []
            for _ in range(2):
                until(lambda: any(node.running and node not in lost for node in [*pool._nodes.values()]))
                lost.append(next(node for node in pool._nodes.values() if node.running))
                ray.kill(lost[-1].actor)
            verdict = answer.result(60)
        assert verdict.outcome == "no_verdict" and "two judges were lost" in verdict.log
        assert verifier.submit(requests(1)[0]).result(60).outcome == "passed", "the others go on"


@needs_ray
@pytest.mark.slow
@pytest.mark.heavy
def test_a_killed_node_loses_and_doubles_no_verdict(three: Cluster) -> None:
    asked = requests(VERDICTS)
    with PythonIO(Sandbox()) as local:
        began = time.monotonic()
        wanted = local.verify(asked)
        local_s = time.monotonic() - began
    completed: Counter[int] = Counter()
    with PythonIO(Sandbox(workers=1), pool="ray", address=three.address) as verifier:
        until(lambda: len(verifier.nodes()) == 3)
        began, killed = time.monotonic(), threading.Event()

        def note(index: int) -> None:
            completed[index] += 1
            if completed.total() == VERDICTS // 2:
                killed.set()

        answers: list[Future[Verdict]] = []
        with pytest.warns(RuntimeWarning, match="is lost"):
            for index, request in enumerate(asked):
                answers.append(verifier.submit(request))
                answers[-1].add_done_callback(lambda _, index=index: note(index))
            assert killed.wait(300)
            busy = [node for node in verifier.ray_pool()._nodes.values() if node.running]
            three.kill(2)
            found = [answer.result(300) for answer in answers]
        ray_s = time.monotonic() - began
        assert len(verifier.nodes()) == 2 and len(busy) == 3
        assert verifier.metrics()["judged"] == VERDICTS
    print(f"local pool: {VERDICTS / local_s:.0f} verdicts/s; three raylets, one killed: {VERDICTS / ray_s:.0f}")
    assert [compared(verdict) for verdict in found] == [compared(verdict) for verdict in wanted]
    assert set(completed.values()) == {1} and len(completed) == VERDICTS
    outcomes = Counter(verdict.outcome for verdict in found)
    assert outcomes["no_verdict"] == 0 and outcomes["passed"] > 0 and outcomes["failed"] > 0
