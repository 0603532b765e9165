"""How the machines of a run meet, refuse each other, and learn that another has ended: over loopback."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psutil
import pytest

from rlvr_exp.config.parallel import Parallel
from rlvr_exp.core.errors import BAD_INPUT, DONE, FAULT, GUARD, InputError, InputProblem
from rlvr_exp.launch import machines
from rlvr_exp.launch.children import free_port
from rlvr_exp.launch.machines import MachineEnd, Machines, met

OPTIONS = {"stage": "grpo", "seed": 0, "parallel.node": 0}


def plan(nodes: int = 2, **more: object) -> Parallel:
    return replace(Parallel(), strategy="ddp", nodes=nodes, address="127.0.0.1", port=free_port(), **more)


def meet(parallel: Parallel, *options: dict[str, object]) -> list[object]:
    """What each machine says at the end of its block: the ends that it heard of, or its error."""
    told = threading.Event()

    def take_part(node: int) -> object:
        own = options[node] if options else {**OPTIONS, "parallel.node": node}
        try:
            with met(replace(parallel, node=node), own, lambda text: None) as others:
                if node:
                    told.wait(10)
                    return others.ends.get(timeout=10)
                others.tell(GUARD)
                told.set()
                return others.ends.get(timeout=10)
        except InputError as fault:
            return fault

    with ThreadPoolExecutor(parallel.nodes) as pool:
        return list(pool.map(take_part, range(parallel.nodes)))


KEPT: list[object] = []
"""Contexts that were entered and not left: one that is forgotten closes its links."""


def enter(parallel: Parallel) -> Machines:
    KEPT.append(context := met(parallel, OPTIONS, str))
    return context.__enter__()


def test_one_machine_waits_for_nobody():
    with met(Parallel(), OPTIONS, pytest.fail) as others:
        others.tell(DONE)
        assert others.interface == "" and others.ends.empty()


def test_a_machine_tells_the_others_how_the_run_ended_there():
    own, first, second = meet(plan(nodes=3))
    assert first == second == MachineEnd(0, GUARD)
    assert isinstance(own, MachineEnd) and own.code == FAULT and own.lost == "its connection ended"


def test_machine_0_passes_on_the_end_of_another_machine_as_it_is():
    parallel = plan(nodes=3)
    with ThreadPoolExecutor(3) as pool:
        first, second, third = pool.map(lambda node: enter(replace(parallel, node=node)), range(3))
    third.close()
    lost = first.ends.get(timeout=5)
    assert isinstance(lost, MachineEnd) and lost.node == 2
    first.pass_on(lost)
    assert second.ends.get(timeout=5) == lost and str(lost) == "machine 2 is gone: its connection ended"
    first.close()
    second.close()


def test_a_machine_that_is_refused_after_the_meeting_tells_its_exit_code():
    parallel = plan()

    def refused() -> None:
        with met(parallel, OPTIONS, str):
            raise InputError(InputProblem("run.dir", "is taken"))

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(refused)
        with met(replace(parallel, node=1), OPTIONS, str) as others:
            assert others.ends.get(timeout=5) == MachineEnd(0, BAD_INPUT)
        with pytest.raises(InputError, match="is taken"):
            first.result(5)


def test_the_other_machines_leave_after_machine_0():
    parallel = plan()

    def last() -> None:
        with met(parallel, OPTIONS, str):
            time.sleep(1)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(last)
        with met(replace(parallel, node=1), OPTIONS, str):
            began = time.monotonic()
        seconds = time.monotonic() - began
        first.result(5)
    assert machines.LAST_S + 0.5 < seconds < machines.LAST_S + 5


def test_a_machine_that_starts_again_during_the_wait_is_taken():
    parallel = plan(nodes=3)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(lambda: enter(parallel))
        with connected(parallel.port + 1) as gone:
            gone.sendall(json.dumps({"node": 1, "options": {"stage": "grpo", "seed": 0}}).encode() + b"\n")
            time.sleep(0.2)
        pair = [pool.submit(lambda n: enter(replace(parallel, node=n)), n) for n in (1, 2)]
        all_met = [one.result(10) for one in (first, *pair)]
    assert [one.ends.empty() for one in all_met] == [True, True, True], "the one that left is not missed"
    for one in all_met:
        one.close()


def test_the_interface_is_the_one_that_reaches_the_others():
    parallel = plan()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: enter(parallel))
        with met(replace(parallel, node=1), OPTIONS, str) as others:
            addresses = {name: {one.address for one in own} for name, own in psutil.net_if_addrs().items()}
            assert "127.0.0.1" in addresses[others.interface] & addresses[first.result().interface]
            first.result().close()


def test_machines_with_other_options_are_refused_on_all_machines():
    given = [{**OPTIONS, "parallel.node": 0, "parallel.threads": 1}, {**OPTIONS, "seed": 1, "parallel.node": 1}]
    refused = meet(plan(), *given)
    for one in refused:
        assert isinstance(one, InputError)
        [problem] = one.problems
        assert problem.where == "seed" and problem.got == "0 and 1" and "machine 1" in problem.what


def test_two_machines_of_one_number_are_refused():
    parallel = plan(nodes=3)
    with ThreadPoolExecutor(3) as pool:
        errors = [pool.submit(lambda n: enter(replace(parallel, node=n)), node) for node in (0, 1, 1)]
        for one in errors:
            with pytest.raises(InputError, match="two machines have this number"):
                one.result(20)


def test_what_is_no_machine_is_ignored(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machines, "HELLO_S", 0.2)
    parallel = plan()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: enter(parallel))
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"[1]\n", b'{"node": "x", "options": 3}\n', b'{"node": 1}\n', b""):
            with connected(parallel.port + 1) as stranger:
                stranger.sendall(said)
                time.sleep(0.05)
        with met(replace(parallel, node=1), OPTIONS, str):
            assert isinstance(first.result(10), Machines)
            first.result().close()


def connected(port: int) -> socket.socket:
    deadline = time.monotonic() + 5
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_silent_machine_counts_as_gone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machines, "SILENT_S", 0.3)
    monkeypatch.setattr(machines, "BEAT_S", 60.0)
    silent, listening = socket.socketpair()
    others = Machines({1: machines.Link(listening)})
    end = others.ends.get(timeout=5)
    assert isinstance(end, MachineEnd) and str(end).startswith("machine 1 is gone: nothing was heard of it for")
    silent.close()


def test_signs_of_life_keep_a_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machines, "SILENT_S", 1.0)
    monkeypatch.setattr(machines, "BEAT_S", 0.05)
    here, there = socket.socketpair()
    pair = [Machines({1: machines.Link(here)}), Machines({0: machines.Link(there)}, node=1)]
    time.sleep(1.5)
    assert all(one.ends.empty() for one in pair)
    pair[1].tell(DONE)
    assert pair[0].ends.get(timeout=5) == MachineEnd(1, DONE)
    for one in pair:
        one.close()


def test_a_machine_that_does_not_come_is_named():
    parallel = plan(nodes=3, timeout_s=1)
    with pytest.raises(InputError, match=r"machines did not come\n    got: 1, 2"):
        enter(parallel)
    with pytest.raises(InputError, match="machine 0 does not answer"):
        enter(replace(parallel, node=1))


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as taken:
        parallel = replace(plan(), port=taken.getsockname()[1] - 1)
        with pytest.raises(InputError, match=r"parallel\.port: the port after it cannot be used"):
            enter(parallel)
