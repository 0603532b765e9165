"""Verifies Dafny programs: `passed` is a proof of the given program's specification, and nothing less.

The tool decides whether a program is proved, the guards whether it is still the given program, and whether it keeps the
code that the problem requires. A program is parsed and resolved first; then the guards check it, and only programs that
they accept are proved. Buckets: `parse` and `resolve` as the tool says; `verify` where an obligation is known to be
unproved; `timeout` where the prover ran out of its resource count, or all of it out of CPU or wall time; `memory`;
`runtime_error` where Dafny itself crashed, twice.

Score: of the procedures that belong to the given program's declarations, the share that is proved; any other failure
counts as one more procedure. So proving helpers does not raise the score.

Not covered: unsoundness of Dafny, Boogie or z3 themselves, and a specification that says too little.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass
from queue import SimpleQueue
from typing import Any, cast

from rlvr_exp.config.verifier import Cache, Sandbox
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.dafny import guards
from rlvr_exp.domains.dafny import tool as options
from rlvr_exp.domains.dafny.acceptance import Proof
from rlvr_exp.domains.dafny.guards import Facts, ProgramDeclarations, Violation, leaves_assumed, read_declarations
from rlvr_exp.domains.dafny.logs import Report
from rlvr_exp.domains.dafny.options import DafnyVerifierOptions
from rlvr_exp.domains.dafny.problem import DafnyProblem, Protect
from rlvr_exp.domains.dafny.soundness import without_limits
from rlvr_exp.domains.dafny.syntax import Unreadable
from rlvr_exp.domains.dafny.tokens import has_directive, plain, printed
from rlvr_exp.domains.dafny.tool import ResolveThenVerify, Run, RunLimits, Warm, find
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.pool import usable
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.engine import CachedVerifier, Judgement, VerificationJob

_LONGEST = 400_000
"""Characters of a candidate; the longest program of DafnyBench has 35,000."""


@dataclass(frozen=True)
class _Case:
    """One candidate to judge. `given` is None where the given program cannot be parsed."""

    given: ProgramDeclarations | None
    keeps: bool
    """Whether there is code to keep: `keep`, or None where it cannot be parsed."""
    keep: ProgramDeclarations | None
    text: str
    limits: RunLimits
    protect: Protect


class DafnyVerifier(CachedVerifier, DafnyVerifierOptions):
    """Judges `DafnyProblem`s.

    Args:
        sandbox: `workers`, `require`, and the limits where this verifier's own are 0; `level=strict` gives every
            candidate its own process.

    `protect` is used where the problem does not set it. `vacuity` is checked once for each content, with the cached verdict.
    """

    runs_candidates = False
    name = "dafny"
    version = "5"

    def __init__(self, sandbox: Sandbox, cache: Cache | None = None, **given: Any):
        super().__init__(cache, **given)
        self._tool = find(self.path, self.image)
        self._limits = RunLimits(
            self.cpu_s or sandbox.cpu_s, self.wall_s or sandbox.wall_s, self.memory_mb or sandbox.memory_mb
        )
        self._read = options.log_reader(self._tool)
        words = options.command_words(self._tool, self.rlimit)
        warmed = self.warm and bool(self._tool.library) and sandbox.level != "strict"
        make = Warm if warmed else ResolveThenVerify
        self._size = sandbox.workers or usable()
        self._runners: SimpleQueue[Warm | ResolveThenVerify] = SimpleQueue()
        self._all = [make(self._tool, words) for _ in range(self._size)]
        for runner in self._all:
            self._runners.put(runner)
        self._threads = ThreadPoolExecutor(self._size, thread_name_prefix="dafny")
        self._isolated: list[str] | None = None
        self._require(sandbox.require)

    def tool(self) -> Mapping[str, str]:
        return self._tool.described()

    def isolation(self) -> dict[str, Any]:
        """The isolation, for the manifest. The tool runs no candidate: it only reads them.

        Raises:
            InputError: the tool does not start. Called before the first candidate is judged.
        """
        if self._isolated is None:
            try:
                self._isolated = self._threads.submit(self._ask_isolation).result()
            except Lost as fault:
                remedy = "try again once the machine has less to do, or set verifier.warm=false"
                raise InputError(InputProblem("verifier", "Dafny does not start", str(fault), remedy=remedy)) from fault
        every = {"files_hidden", "files_read_only", "ipc", "network", "processes", "system_calls", "user_id"}
        level = "namespaces" if self._isolated else "process"
        return {"level": level, "isolated": self._isolated, "not_isolated": sorted(every - set(self._isolated))}

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for runner in self._all:
            runner.close()
        super().close()

    def prepare(self, request: Request) -> Verdict | VerificationJob:
        problem, candidate = request.problem, request.candidate
        if not isinstance(problem, DafnyProblem):
            return Verdict("no_verdict", log=f"dafny judges no {type(problem).__name__}")
        if candidate.text is None:
            return Verdict("failed", "parse", log=candidate.fault or "no program in the answer")
        if len(candidate.text) > _LONGEST:
            return Verdict("failed", "output_limit", log=f"{len(candidate.text)} characters, at most {_LONGEST}")
        try:
            candidate.text.encode()
        except UnicodeEncodeError:
            return Verdict("failed", "parse", log="not Unicode text")
        early = guards.before_parsing(plain(problem.program), plain(candidate.text))
        if early is not None:
            return Verdict("rejected", rule=early.rule, log=early.log)
        text, program = _seen(candidate.text), _seen(problem.program)
        keep = None if problem.keep is None else _seen(problem.keep)
        named, usual = problem.limits, self._limits
        limits = RunLimits(named.cpu_s or usual.cpu_s, named.wall_s or usual.wall_s, named.memory_mb or usual.memory_mb)
        protect = problem.protect or cast(Protect, self.protect)
        own = [protect, self.holes, self.vacuity, self.rlimit, *astuple(limits)]
        content = wire.encode([_bytes(program), text, own, None if keep is None else _bytes(keep)])
        return VerificationJob(
            content,
            _Case(
                _read_declarations(problem.program),
                keep is not None,
                _read_declarations(problem.keep),
                text,
                limits,
                protect,
            ),
            request,
        )

    def start(self, work: VerificationJob) -> Future[Judgement]:
        return self._threads.submit(self._judge, work.payload)

    def _require(self, level: str) -> None:
        if level not in ("strict", "namespaces", "user"):
            return
        try:
            if self.isolation()["level"] == "process":
                remedy = "allow user namespaces, or lower sandbox.require"
                raise InputError(
                    InputProblem("sandbox.require", "this machine gives less", "process", level, remedy=remedy)
                )
        except InputError:
            self.close()
            raise

    def _ask_isolation(self) -> list[str]:
        runner = self._runners.get()
        try:
            return runner.isolated()
        finally:
            self._runners.put(runner)

    def _judge(self, case: _Case) -> Judgement:
        runner = self._runners.get()
        try:
            return _CandidateRun(self, runner, case).judge()
        except Lost as fault:
            return Judgement(Verdict("no_verdict", log=str(fault)), cacheable=False)
        finally:
            self._runners.put(runner)


def _seen(text: str) -> str:
    """The program as the tool and the guards see it: tokens in their places, comments and limits blanked out."""
    return without_limits(printed(plain(text)))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _read_declarations(program: str | None) -> ProgramDeclarations | None:
    if program is None or has_directive(plain(program)):
        return None
    try:
        return read_declarations(_seen(program))
    except Unreadable:
        return None


class _CandidateRun:
    """One candidate, from the first run to the verdict."""

    def __init__(self, verifier: DafnyVerifier, runner: Warm | ResolveThenVerify, case: _Case):
        self._own, self._runner, self._case = verifier, runner, case
        self._violation: Violation | None = None
        self._facts = Facts()
        self._cpu_s = 0.0

    def judge(self) -> Judgement:
        case = self._case
        given = case.given
        assumes = given is None or leaves_assumed(given, case.text)
        extra = () if assumes else options.careful_words(self._own._tool)
        run = self._run_with_retry(case.text, extra)
        if run.end == "stopped" and self._violation is not None:
            return Judgement(self._rejected(self._violation))
        if run.end != "done":
            return Judgement(self._ended(run), cacheable=run.end != "wall")
        report = self._own._read(run.output, run.code)
        if not report.proved:
            return Judgement(self._failed(report))
        return self._proved(report, extra)

    def _run_with_retry(self, text: str, extra: Sequence[str]) -> Run:
        """A run; retried after a crash, and with twice the time after a run that reached its wall clock limit."""
        limits = self._case.limits
        run = self._run(text, extra, limits)
        if run.end == "crash":
            run = self._run(text, extra, limits)
        if run.end == "wall":
            run = self._run(text, extra, RunLimits(limits.cpu_s, 2 * limits.wall_s, limits.memory_mb))
        return run

    def _run(self, text: str, extra: Sequence[str], limits: RunLimits) -> Run:
        run = self._runner.run(text, extra, limits, self._may_be_proved)
        self._cpu_s += run.cpu_s
        return run

    def _may_be_proved(self) -> bool:
        """The guards' decision, taken once the program has parsed and resolved."""
        if self._case.given is None:
            self._violation = None
            return True
        if self._case.keeps and self._case.keep is None:
            self._violation = Violation("program-changed", "the code to keep cannot be read: what resolves is another")
            return False
        try:
            self._violation, self._facts = guards.check(
                self._case.given, self._case.text, self._case.protect, self._own.holes, self._case.keep
            )
        except Unreadable as fault:
            self._violation = Violation("unreadable", str(fault))
        return self._violation is None

    def _proved(self, report: Report, extra: Sequence[str]) -> Judgement:
        given = self._case.given
        if given is None:
            fault = Violation("unreadable", "the given program itself cannot be read: nothing is protected")
            return Judgement(self._rejected(fault))
        if report.bodyless != self._facts.bodyless:
            return Judgement(self._rejected(Violation("no-body", "a loop or forall statement has no body")))
        objection = self._objection(report, given, extra)
        if isinstance(objection, Run):
            return Judgement(self._ended(objection), cacheable=False)
        if objection is not None:
            return Judgement(self._rejected(objection))
        passed, total = _counts(report, given)
        return Judgement(Verdict("passed", passed=passed, total=total, seconds=self._cpu_s))

    def _objection(self, report: Report, given: ProgramDeclarations, extra: Sequence[str]) -> Violation | Run | None:
        tool, case = self._own._tool, self._case
        # A refining module's bodies have other names in the log.
        named = tool.family == "2.3" and not {"refines", "abstract"} & given.spoken
        proof = Proof(given, case.text, self._facts, report, named, self._probe, self._own._read)
        probing = options.probing_words(tool, self._own.rlimit)
        return proof.objection(extra, probing, options.searching_words(tool), self._own.vacuity)

    def _probe(self, text: str, extra: Sequence[str]) -> Run:
        """Run a probing program, without the guards; once more, with the candidate's own limits, where it reaches one."""
        own = self._case.limits
        short = RunLimits(min(own.cpu_s, options.PROBE_CPU_S), own.wall_s, own.memory_mb)
        run = Run("crash")
        for limits in (short, RunLimits(own.cpu_s, 2 * own.wall_s, own.memory_mb)):
            run = self._runner.run(text, extra, limits, lambda: True)
            self._cpu_s += run.cpu_s
            if run.end == "done":
                break
        return run

    def _rejected(self, violation: Violation) -> Verdict:
        return Verdict("rejected", rule=violation.rule, seconds=self._cpu_s, log=violation.log)

    def _ended(self, run: Run) -> Verdict:
        limits = self._case.limits
        bucket, log = {
            "cpu": ("timeout", f"stopped at its CPU limit of {limits.cpu_s:g} s"),
            "wall": ("timeout", f"stopped at its wall clock limit, twice {limits.wall_s:g} s"),
            "memory": ("memory", f"used more than {limits.memory_mb} MB"),
            "crash": ("runtime_error", "Dafny broke down on it twice: " + run.output[-300:].strip()),
        }[run.end]
        return Verdict("failed", bucket, seconds=self._cpu_s, log=log)

    def _failed(self, report: Report) -> Verdict:
        if report.careless:
            return self._rejected(Violation("no-body", report.faults[0].text if report.faults else "no body"))
        passed, total = _counts(report, self._case.given)
        return Verdict("failed", report.bucket, passed=passed, total=total, seconds=self._cpu_s, log=report.summary())


def _counts(report: Report, given: ProgramDeclarations | None) -> tuple[int, int]:
    """(proved, all) procedures of the given declarations; one more of all where anything else failed."""
    labels = given.labels if given is not None else frozenset()
    theirs = [one.result == "verified" for one in report.procedures if one.name in labels]
    others = [one.result == "verified" for one in report.procedures if one.name not in labels]
    proved, total = sum(theirs), len(theirs)
    if not report.proved and (not all(others) or proved == total):
        total += 1
    return proved, total
