"""`verifier.pool=ray`: one judge on each node of a Ray cluster. Cache and in-flight table stay with the caller.

A judge is a verifier without a cache, in an actor of its own, with the sandbox of its node. It counts only if code, versions,
tools and isolation equal the caller's. A thread of the caller hands out requests and takes answers. If a judge is lost, its
requests go to another one; a request that loses two judges gets no verdict. Nodes that join later are used, too.

Judges reserve no CPUs of the cluster, so that several runs can share it.
"""

import os
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError, InputProblem, RlvrError
from rlvr_exp.core.ray_cluster import code_digest, join_cluster

LOOK_S = 5.0
"""Seconds between two looks for new nodes."""
START_S = 120.0
"""A judge that has not started by then is given up: its node may first unpack the package."""
STARTS = 3
"""Attempts to start a judge on a node."""
PATIENCE_S = 60.0
"""Requests wait that long for a judge."""
AHEAD_S, MOST_AHEAD = 0.3, 64
"""Requests that wait at a judge: for about so many seconds, at most so many for each of its workers."""
BATCH = 256
"""Most requests in one message."""
_GATHER_S, _ANSWER_S = 0.002, 10.0


class Judge:
    """The verifier of a node, in an actor.

    Args:
        kind: the class of the verifier. options: its options.
    """

    def __init__(self, kind: type, sandbox: Sandbox, options: Mapping[str, Any]):
        self._verifier = kind(sandbox, None, **options)
        self._answers: SimpleQueue[tuple[int, Any, str]] = SimpleQueue()

    def identity(self) -> Mapping[str, Any]:
        return identity_of(self._verifier)

    def judge(self, orders: Sequence[tuple[int, str, tuple[Any, ...]]]) -> None:
        """Begin to judge. An order is a number, the name of a method of the verifier that returns a future, and arguments."""
        for number, method, arguments in orders:
            try:
                judging = getattr(self._verifier, method)(*arguments)
            except Exception as fault:
                self._answers.put((number, None, f"{type(fault).__name__}: {fault}"))
            else:
                judging.add_done_callback(partial(self._note, number))

    def answers(self) -> list[tuple[int, Any, str]]:
        """Wait for an answer and return all that are ready: number, value, and the fault if there is no value. Empty after
        some seconds without an answer."""
        try:
            found = [self._answers.get(timeout=_ANSWER_S)]
        except Empty:
            return []
        time.sleep(_GATHER_S)  # Several answers per message cost less.
        while len(found) < BATCH:
            try:
                found.append(self._answers.get_nowait())
            except Empty:
                break
        return found

    def _note(self, number: int, done: Future[Any]) -> None:
        fault = done.exception()
        text = "" if fault is None else f"{type(fault).__name__}: {fault}"
        self._answers.put((number, done.result() if fault is None else None, text))


def identity_of(verifier: Any) -> Mapping[str, Any]:
    """All that decides verdicts besides the requests: equal on the caller and on every node that counts."""
    return {**verifier.identity(), "isolation": verifier.isolation(), "code": code_digest()}


def reason_of(fault: BaseException) -> str:
    """The last line of a fault of Ray: the cause, after a traceback."""
    return [type(fault).__name__, *filter(None, map(str.strip, str(fault).splitlines()))][-1][:300]


@dataclass(eq=False)
class Order:
    """A request on its way to a verdict."""

    method: str
    arguments: tuple[Any, ...]
    lost: Callable[[str], Any]
    """Returns the value without a verdict, for a reason."""
    answer: Future[Any] = field(default_factory=Future)
    lost_once: bool = False


@dataclass(eq=False)
class Node:
    """A node of the cluster with its judge."""

    id: str
    host: str
    workers: int
    actor: Any
    start_by: float
    ready: bool = False
    running: dict[int, Order] = field(default_factory=dict)
    rate: float = 0.0
    """Answers a second while it is busy."""
    heard: float = 0.0

    @property
    def free(self) -> int:
        """Number of further orders that it takes now."""
        ahead = min(MOST_AHEAD * self.workers, int(self.rate * AHEAD_S))
        return self.workers + ahead - len(self.running)


class RayPool:
    """The judges of a cluster.

    Args:
        verifier: the caller's verifier; each judge has the same class and `options`.
        sandbox: its node; `workers` of every judge, 0: the CPUs of the node, shared by the ranks of the run.
        address: see `join_cluster`.

    Raises:
        InputError: there is no cluster, or none of its nodes can judge as the caller does.
    """

    def __init__(self, verifier: Any, sandbox: Sandbox, options: Mapping[str, Any], address: str):
        import ray

        self.address = join_cluster("verifier.address", address)
        self._ray, self._kind, self._sandbox, self._options = ray, type(verifier), sandbox, options
        self._actor = ray.remote(Judge)
        self._identity = identity_of(verifier)
        self._events: SimpleQueue[tuple[str, Any, Any]] = SimpleQueue()
        self._waiting: deque[Order] = deque()
        self._nodes: dict[str, Node] = {}
        self._refused: set[str] = set()
        """Ids of nodes that judge differently, or whose judge did not start several times."""
        self._failures: Counter[str] = Counter()
        self._faults: dict[str, None] = {}
        self._numbers = count()
        self._look_at = self._none_since = 0.0
        self._lock, self._closed = threading.Lock(), False
        self._decided = threading.Event()
        """Set once each node of the first look has a judge, or cannot have one."""
        self._thread = threading.Thread(target=self._serve, name="ray-judges", daemon=True)
        self._thread.start()
        self._decided.wait()
        if not self.nodes():
            reasons = "; ".join(self._faults) or "it has no node with a CPU"
            self.close()
            remedy = "install the caller's packages on the nodes, or use verifier.pool=local"
            raise InputError(InputProblem("verifier.pool", f"no node can judge: {reasons}", "ray", "", "", remedy))

    def submit(self, method: str, *arguments: Any, lost: Callable[[str], Any]) -> Future[Any]:
        """Call a method of the verifier on some node.

        Args:
            method: its name. It returns a future.
            lost: makes the result if there is no verdict, from the reason.

        Raises:
            ValueError: the pool is closed.
        """
        order = Order(method, arguments, lost)
        order.answer.set_running_or_notify_cancel()
        with self._lock:
            if self._closed:
                raise ValueError("the pool is closed")
            self._events.put(("order", None, order))
        return order.answer

    def nodes(self) -> list[str]:
        """The nodes that judge, each with its number of workers."""
        return [f"{node.host}: {node.workers} workers" for node in list(self._nodes.values()) if node.ready]

    def close(self) -> None:
        """End the judges. Requests without an answer get no verdict."""
        with self._lock:
            self._closed = True
            self._events.put(("close", None, None))
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # The thread

    def _serve(self) -> None:
        reason = "the pool was closed"
        try:
            while not self._closed:
                self._look_at_clock()
                self._hand_out()
                self._take_events()
        except BaseException as fault:  # Nobody may wait for ever.
            reason = f"the pool of nodes failed: {type(fault).__name__}: {fault}"
            with self._lock:
                self._closed = True
        self._end(reason)

    def _look_at_clock(self) -> None:
        now = time.monotonic()
        for node in [node for node in self._nodes.values() if not node.ready and node.start_by < now]:
            self._lose(node, f"no judge within {START_S:.0f} s")
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self._look_for_nodes()
        if any(node.ready for node in self._nodes.values()):
            self._none_since = now
        elif now - self._none_since > PATIENCE_S and self._decided.is_set():
            for order in self._waiting:
                order.answer.set_result(order.lost("no node of the cluster judges any more"))
            self._waiting.clear()

    def _look_for_nodes(self) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        ranks = int(os.environ.get("WORLD_SIZE") or 1)
        for about in self._ray.nodes():
            name, cpus = about["NodeID"], int(about["Resources"].get("CPU", 0))
            if not about["Alive"] or not cpus or name in self._nodes or name in self._refused:
                continue
            workers = self._sandbox.workers or max(1, cpus // ranks)
            here = NodeAffinitySchedulingStrategy(name, soft=False)
            options = {"num_cpus": 0, "max_concurrency": 4, "max_restarts": 0, "scheduling_strategy": here}
            actor = self._actor.options(**options).remote(
                self._kind, replace(self._sandbox, workers=workers), self._options
            )
            node = Node(name, about["NodeManagerHostname"], workers, actor, time.monotonic() + START_S)
            self._nodes[name] = node
            self._expect("greeting", node, actor.identity.remote())
        self._decide()

    def _decide(self) -> None:
        if all(node.ready for node in self._nodes.values()):
            self._decided.set()

    def _hand_out(self) -> None:
        while self._waiting:
            open_nodes = [node for node in self._nodes.values() if node.ready and node.free > 0]
            if not open_nodes:
                return
            node = max(open_nodes, key=lambda one: one.free / one.workers)
            fair = -(-len(self._waiting) // len(open_nodes))
            self._send(node, [self._waiting.popleft() for _ in range(min(node.free, fair, BATCH))])

    def _send(self, node: Node, orders: Sequence[Order]) -> None:
        numbered = {next(self._numbers): order for order in orders}
        if not node.running:
            node.heard = time.monotonic()
        try:
            node.actor.judge.remote([(number, one.method, one.arguments) for number, one in numbered.items()])
        except Exception as fault:  # A request that cannot be pickled.
            if len(orders) == 1:
                orders[0].answer.set_exception(fault)
                return
            for order in orders:
                self._send(node, [order])
            return
        node.running |= numbered

    def _take_events(self) -> None:
        """Wait for an event, but not past the next look at the clock, and handle all that are there."""
        try:
            event = self._events.get(timeout=max(0.0, self._look_at - time.monotonic()))
            while True:
                self._handle(*event)
                event = self._events.get_nowait()
        except Empty:
            pass

    def _handle(self, kind: str, node: Node | None, value: Any) -> None:
        if kind == "order":
            self._waiting.append(value)
        elif node is None or self._nodes.get(node.id) is not node:
            return  # A lost judge's late answer: its requests are elsewhere.
        elif (fault := value.exception()) is not None:
            self._lose(node, reason_of(fault))
        elif kind == "greeting":
            self._greet(node, value.result())
        elif kind == "answers":
            self._expect("answers", node, node.actor.answers.remote())
            self._note(node, value.result())

    def _greet(self, node: Node, identity: Mapping[str, Any]) -> None:
        differing = [
            f"{name} {identity.get(name)} instead of {ours}"
            for name, ours in self._identity.items()
            if identity.get(name) != ours
        ]
        if differing:
            del self._nodes[node.id]
            self._ray.kill(node.actor)
            self._refused.add(node.id)
            fault = f"{node.host} judges differently: {'; '.join(differing)}"
            self._faults[fault] = None
            _warn(f"node {fault}; it is not used")
        else:
            node.ready = True
            self._expect("answers", node, node.actor.answers.remote())
        self._decide()

    def _note(self, node: Node, answers: Sequence[tuple[int, Any, str]]) -> None:
        now = time.monotonic()
        if answers:
            rate = len(answers) / max(now - node.heard, 1e-4)
            node.rate += 0.3 * (rate - node.rate)
            node.heard = now
        for number, value, fault in answers:
            order = node.running.pop(number, None)
            if order is None:
                continue
            if fault:
                order.answer.set_exception(RlvrError(f"node {node.host}: {fault}"))
            else:
                order.answer.set_result(value)

    def _lose(self, node: Node, reason: str) -> None:
        """The judge is gone. Its requests are sent once more; the next look finds the node again if it lives."""
        del self._nodes[node.id]
        self._ray.kill(node.actor)
        self._faults[f"{node.host}: {reason}"] = None
        self._failures[node.id] += not node.ready
        if self._failures[node.id] >= STARTS:
            self._refused.add(node.id)
        _warn(f"node {node.host} is lost: {reason}; {len(node.running)} requests are sent to other nodes")
        for order in reversed(node.running.values()):
            if order.lost_once:
                order.answer.set_result(order.lost(f"two judges were lost: {reason}"))
            else:
                order.lost_once = True
                self._waiting.appendleft(order)
        self._decide()

    def _expect(self, kind: str, node: Node, reference: Any) -> None:
        reference.future().add_done_callback(lambda done: self._events.put((kind, node, done)))

    def _end(self, reason: str) -> None:
        orders = [*self._waiting, *(order for node in self._nodes.values() for order in node.running.values())]
        try:
            while True:
                kind, _, value = self._events.get_nowait()
                orders += [value] if kind == "order" else []
        except Empty:
            pass
        for node in self._nodes.values():
            self._ray.kill(node.actor)
        self._nodes.clear()
        for order in orders:
            order.answer.set_result(order.lost(reason))
        self._decided.set()


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)
