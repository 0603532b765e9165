"""The machines of one run: they meet before the run starts, and each learns that another has ended.

The parent on machine 0 listens at the port after `parallel.port`; the parent of every other machine connects to it. A run starts
when all are there, with the same options. Later only signs of life and ends are sent; machine 0 passes ends on. Without them,
processes would wait up to `parallel.timeout_s` in a collective operation for a machine that is gone. Never imports torch.
"""

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from queue import SimpleQueue
from typing import Any

from rlvr_exp.config.parallel import Parallel
from rlvr_exp.core.errors import FAULT, InputError, InputProblem, RlvrError

BEAT_S, SILENT_S = 5.0, 60.0
"""Seconds between signs of life, and seconds without one after which a machine counts as gone."""
LEAVE_S = 120.0
"""Seconds that the other machines wait at the end for machine 0, which writes the report. Launchers such as srun kill all when the
first ends."""
LAST_S = 2.0
"""Seconds that they leave the process of machine 0 to end after its last word."""
HELLO_S = 10.0
"""Seconds that a new connection has to introduce itself."""
MOST_BYTES = 1 << 20
OWN = ("parallel.node", "parallel.threads", "sandbox.workers")
"""Options that may differ between machines."""

Message = dict[str, Any]


@dataclass(frozen=True)
class MachineEnd:
    """How the run ended on another machine."""

    node: int
    code: int = FAULT
    lost: str = ""
    """The reason why nothing is known about its end; empty if it told its exit code."""

    def __str__(self) -> str:
        return (
            f"machine {self.node} is gone: {self.lost}" if self.lost else f"machine {self.node} ended with {self.code}"
        )


class Link:
    """A connection to another parent that carries one JSON object a line."""

    def __init__(self, connection: socket.socket):
        self._connection, self._lines = connection, connection.makefile("rb")
        self._sending = threading.Lock()

    @property
    def own_address(self) -> str:
        """The address of this machine that the other one sees."""
        return str(self._connection.getsockname()[0]).removeprefix("::ffff:")

    def send(self, message: Message) -> None:
        with self._sending, suppress(OSError):  # `receive` tells that the other is gone.
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, within_s: float) -> Message:
        """Raises OSError: the connection ended, nothing came in time, or what came is no message."""
        self._connection.settimeout(within_s)
        line = self._lines.readline(MOST_BYTES)
        if not line.endswith(b"\n"):
            raise ConnectionError("its connection ended")
        try:
            message = json.loads(line)
        except ValueError:
            raise ConnectionError("it sent something else than a message") from None
        if not isinstance(message, dict):
            raise ConnectionError("it sent something else than a message")
        return message

    @property
    def ended(self) -> bool:
        """Whether the other machine has closed it."""
        self._connection.settimeout(0)
        try:
            return self._connection.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class Machines:
    """The other machines of a run that has started.

    Args:
        links: by number of the machine. Machine 0 has one to each; every other machine has one to machine 0.
        node: the number of this machine.
    """

    def __init__(self, links: Mapping[int, Link], node: int = 0):
        self._links, self._node = links, node
        self._over = threading.Event()
        self.ends: SimpleQueue[int | MachineEnd] = SimpleQueue()
        """The ends of other machines as they are heard of. Those of local processes are added to it, in the order of their
        occurrence."""
        self._listening = [
            threading.Thread(target=self._listen, args=(node, link), name=f"machine {node}", daemon=True)
            for node, link in links.items()
        ]
        for thread in self._listening:
            thread.start()
        if links:
            threading.Thread(target=self._beat, name="signs of life", daemon=True).start()

    @property
    def interface(self) -> str:
        """The network interface by which the machines reach each other; empty if there is one machine, or if none has the
        address."""
        if not self._links:
            return ""
        import psutil

        address = next(iter(self._links.values())).own_address
        return next(
            (name for name, own in psutil.net_if_addrs().items() if address in {one.address for one in own}), ""
        )

    def tell(self, code: int) -> None:
        """Tell the others how the run ended here. Only the first end counts for them."""
        self.pass_on(MachineEnd(self._node, code))

    def pass_on(self, end: MachineEnd) -> None:
        """Tell the others how the run ended on a machine."""
        for node, link in self._links.items():
            if node != end.node:
                link.send(asdict(end))

    def leave(self) -> None:
        """Wait for machine 0 to end, for at most `LEAVE_S`. A request to stop that comes meanwhile has nothing left to stop."""
        if self._node == 0 or threading.current_thread() is not threading.main_thread():
            return
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._listening[0].join(LEAVE_S)
        time.sleep(LAST_S)
        signal.signal(signal.SIGTERM, before)

    def close(self) -> None:
        self._over.set()
        for link in self._links.values():
            link.close()

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            for link in self._links.values():
                link.send({})

    def _listen(self, node: int, link: Link) -> None:
        told, lost = False, ""
        while not lost:
            try:
                message = link.receive(SILENT_S)
                if "code" in message:
                    self.ends.put(MachineEnd(**message))
                    told = True
            except TimeoutError:
                lost = f"nothing was heard of it for {SILENT_S:.0f} s"
            except (OSError, TypeError) as fault:
                lost = str(fault)
        if not told:
            self.ends.put(MachineEnd(node, lost=lost))


@contextmanager
def met(parallel: Parallel, options: Mapping[str, Any], say: Callable[[str], None]) -> Iterator[Machines]:
    """Wait for all machines of the run; they leave each other at the end of the block.

    Args:
        options: the leaves of the configuration by their dotted paths. They must be the same on all machines, except `OWN`.
        say: receives the text of what is waited for.

    Raises:
        InputError: a machine does not come within `parallel.timeout_s`, or its options differ.
    """
    own = {key: value for key, value in options.items() if key not in OWN}
    if parallel.nodes == 1:
        links: dict[int, Link] = {}
    elif parallel.node == 0:
        links = _gathered(parallel, own, say)
    else:
        links = {0: _admitted(parallel, own, say)}
    machines = Machines(links, parallel.node)
    try:
        yield machines
        machines.leave()
    except RlvrError as stop:
        machines.tell(stop.exit_code)
        raise
    finally:
        machines.close()


def _gathered(parallel: Parallel, own: Mapping[str, Any], say: Callable[[str], None]) -> dict[int, Link]:
    """Machine 0: a link to each of the others, all of which may start."""
    deadline, links = time.monotonic() + parallel.timeout_s, dict[int, Link]()
    with _server(parallel.port + 1) as server:
        say(f"waiting for {parallel.nodes - 1} more machines at port {parallel.port + 1}")
        while True:
            for node in [node for node, link in links.items() if link.ended]:
                links.pop(node).close()  # It may come again.
            if len(links) == parallel.nodes - 1:
                break
            server.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                link = Link(server.accept()[0])
            except TimeoutError:
                missing = ", ".join(str(node) for node in range(1, parallel.nodes) if node not in links)
                what, remedy = "machines did not come", "start the same command there with its parallel.node"
                raise _refusal(links, InputProblem("parallel.nodes", what, missing, remedy=remedy)) from None
            try:
                hello = link.receive(HELLO_S)
                node, theirs = int(hello["node"]), dict(hello["options"])
            except (OSError, KeyError, TypeError, ValueError):
                link.close()  # Not one of ours, such as a scanner of ports.
                continue
            if (node in links and not links[node].ended) or not 0 < node < parallel.nodes:
                what, got = "two machines have this number", f"parallel.node={node}"
                raise _refusal({**links, -1: link}, InputProblem("parallel.node", what, got, remedy="one each"))
            if node in links:
                links[node].close()
            links[node] = link
            keys = [key for key in {**own, **theirs} if own.get(key) != theirs.get(key)]
            if keys:
                raise _refusal(links, *(_difference(key, node, own.get(key), theirs.get(key)) for key in keys))
    for link in links.values():
        link.send({"start": True})
    return links


def _server(port: int) -> socket.socket:
    both = socket.has_dualstack_ipv6()
    try:
        return socket.create_server(("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both)
    except OSError as fault:
        what, remedy = f"the port after it cannot be used: {fault.strerror}", "another parallel.port on every machine"
        raise InputError(InputProblem("parallel.port", what, f"{port - 1}", remedy=remedy)) from None


def _difference(key: str, node: int, ours: object, theirs: object) -> InputProblem:
    return InputProblem(key, f"differs between machine 0 and machine {node}", f"{ours} and {theirs}", "the same value")


def _refusal(links: Mapping[int, Link], *problems: InputProblem) -> InputError:
    """The error of this machine. All others are told the same."""
    error = InputError(*problems)
    for link in links.values():
        link.send({"refused": [vars(one) for one in problems]})
        link.close()
    return error


def _admitted(parallel: Parallel, own: Mapping[str, Any], say: Callable[[str], None]) -> Link:
    """Another machine: its link to machine 0, which has let it start."""
    place, deadline = (parallel.address, parallel.port + 1), time.monotonic() + parallel.timeout_s
    say(f"waiting for machine 0 at {place[0]}:{place[1]}")
    while True:
        try:
            link = Link(socket.create_connection(place, timeout=HELLO_S))
            break
        except OSError as fault:
            if time.monotonic() > deadline:
                what, remedy = f"machine 0 does not answer: {fault}", "start machine 0; open its port to this machine"
                raise InputError(
                    InputProblem("parallel.address", what, f"{place[0]}:{place[1]}", remedy=remedy)
                ) from None
            time.sleep(0.5)
    link.send({"node": parallel.node, "options": dict(own)})
    try:
        answer = link.receive(parallel.timeout_s + HELLO_S)
    except TimeoutError:
        what, remedy = "not all machines came", "start the same command there with its parallel.node"
        raise InputError(InputProblem("parallel.nodes", what, f"{parallel.nodes}", remedy=remedy)) from None
    except OSError as fault:
        what, remedy = f"machine 0 left before the start: {fault}", "see its output"
        raise InputError(InputProblem("parallel.address", what, f"{place[0]}:{place[1]}", remedy=remedy)) from None
    if "refused" in answer:
        raise InputError(*(InputProblem(**one) for one in answer["refused"]))
    return link
