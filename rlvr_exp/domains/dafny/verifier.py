"""Verifies Dafny programs: `passed` is a proof of the given program's specification, and nothing less.

The tool decides whether a program is proved, the guards whether it is still the given program and keeps the code that the
problem requires. A program is parsed and resolved first; then the guards check it, and only programs that they accept are proved.
Buckets: `parse` and `resolve` as the tool reports; `verify` if an obligation is known to be unproved; `timeout` if the prover ran
out of its resource count, or all of it out of CPU or wall time; `memory`; `runtime_error` if Dafny itself crashed, twice.

Score: of the procedures that belong to the given program's declarations, the share that is proved; any other failure
counts as one more procedure. So proving helpers does not raise the score.

A program that the tool calls proved is accepted only if each promise is in its log, and false is not proved as well. Dafny 2.3
writes a line for each body that must keep a promise. If a line is missing, a probe (`assert false` at the end of that body) must be
reported as an error. With `vacuity` every body is probed, at its end and before each `return` and `yield`, so that its probe is
proved only if no exit can be reached. Then the proof means nothing, for a given body and for a new body that requires nothing. A
given contract that implies false is no fault of the candidate: `contract_probe` finds that out from the given program.

Not covered: unsoundness of Dafny, Boogie or z3 themselves, and a specification that says too little.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass
from queue import SimpleQueue
from typing import Any, cast

from rlvr_exp.config.verifier import Cache, Sandbox
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.dafny import guards, tool
from rlvr_exp.domains.dafny.guards import (
    PROVED,
    Facts,
    ProgramDeclarations,
    Violation,
    labelled,
    leaves_assumed,
    read_declarations,
)
from rlvr_exp.domains.dafny.logs import Report
from rlvr_exp.domains.dafny.options import DafnyVerifierOptions
from rlvr_exp.domains.dafny.problem import DafnyProblem, Protect
from rlvr_exp.domains.dafny.soundness import without_limits
from rlvr_exp.domains.dafny.syntax import Unreadable, parse
from rlvr_exp.domains.dafny.tokens import has_directive, plain, printed, tokens, with_inserted
from rlvr_exp.domains.dafny.tool import ResolveThenVerify, RunLimits, ToolRun, Warm
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.pool import usable
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.engine import CachedVerifier, Judgement, VerificationJob

_LONGEST = 400_000
"""Characters of a candidate; the longest program of DafnyBench has 35,000."""
_PROBE = " assert false; "


@dataclass(frozen=True)
class _Case:
    """One candidate to judge. `given` is None if the given program cannot be parsed."""

    given: ProgramDeclarations | None
    keeps: bool
    """Whether the problem has code to keep: `keep`, or None if it cannot be parsed."""
    keep: ProgramDeclarations | None
    text: str
    limits: RunLimits
    protect: Protect


class DafnyVerifier(CachedVerifier, DafnyVerifierOptions):
    """Judges `DafnyProblem`s.

    Args:
        sandbox: `workers`, `require`, and the limits if this verifier's own are 0; `level=strict` gives every
            candidate its own process.

    `protect` is used if the problem does not set it. `vacuity` is checked once for each content, with the cached verdict.
    """

    runs_candidates = False
    name = "dafny"
    version = "5"

    def __init__(self, sandbox: Sandbox, cache: Cache | None = None, **given: Any):
        super().__init__(cache, **given)
        self._tool = tool.find(self.path, self.image)
        self._limits = RunLimits(
            self.cpu_s or sandbox.cpu_s, self.wall_s or sandbox.wall_s, self.memory_mb or sandbox.memory_mb
        )
        self._read = tool.log_reader(self._tool)
        words = tool.command_words(self._tool, self.rlimit)
        warmed = self.warm and bool(self._tool.library) and sandbox.level != "strict"
        make = Warm if warmed else ResolveThenVerify
        size = sandbox.workers or usable()
        self._runners: SimpleQueue[Warm | ResolveThenVerify] = SimpleQueue()
        self._all = [make(self._tool, words) for _ in range(size)]
        for runner in self._all:
            self._runners.put(runner)
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="dafny")
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
                self._isolated = self._threads.submit(self._with_runner, lambda runner: runner.isolated()).result()
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
        given, kept = _read_declarations(problem.program), _read_declarations(problem.keep)
        return VerificationJob(content, _Case(given, keep is not None, kept, text, limits, protect), request)

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

    def _with_runner(self, work: Callable[[Warm | ResolveThenVerify], Any]) -> Any:
        runner = self._runners.get()
        try:
            return work(runner)
        finally:
            self._runners.put(runner)

    def _judge(self, case: _Case) -> Judgement:
        try:
            return self._with_runner(lambda runner: _CandidateRun(self, runner, case).judge())
        except Lost as fault:
            return Judgement(Verdict("no_verdict", log=str(fault)), cacheable=False)


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
        """Run the program; once more after a crash, and with twice the time after it reached its wall clock limit."""
        case, limits = self._case, self._case.limits
        assumes = case.given is None or leaves_assumed(case.given, case.text)
        careful = () if assumes else tool.careful_words(self._own._tool)
        run = self._run(case.text, careful, limits, self._may_be_proved)
        if run.end == "crash":
            run = self._run(case.text, careful, limits, self._may_be_proved)
        if run.end == "wall":
            longer = RunLimits(limits.cpu_s, 2 * limits.wall_s, limits.memory_mb)
            run = self._run(case.text, careful, longer, self._may_be_proved)
        if run.end == "stopped" and self._violation is not None:
            return self._rejected(self._violation)
        if run.end != "done":
            return self._ended(run, cacheable=run.end != "wall")
        report = self._own._read(run.output, run.code)
        if report.careless:
            return self._rejected(Violation("no-body", report.faults[0].text))
        passed, total = _counts(report, case.given)
        if not report.proved:
            verdict = Verdict(
                "failed", report.bucket, passed=passed, total=total, seconds=self._cpu_s, log=report.summary()
            )
            return Judgement(verdict)
        if case.given is None:
            fault = Violation("unreadable", "the given program itself cannot be read: nothing is protected")
            return self._rejected(fault)
        if report.bodyless != self._facts.bodyless:
            return self._rejected(Violation("no-body", "a loop or forall statement has no body"))
        # A refining module's bodies have other names in the log.
        named = self._own._tool.family == "2.3" and not {"refines", "abstract"} & case.given.spoken
        proof = Proof(case.given, case.text, self._facts, report, named, self._probe, self._own._read)
        probing = tool.probing_words(self._own._tool, self._own.rlimit)
        objection = proof.objection(careful, probing, tool.searching_words(self._own._tool), self._own.vacuity)
        if isinstance(objection, ToolRun):
            return self._ended(objection, cacheable=False)
        if objection is not None:
            return self._rejected(objection)
        return Judgement(Verdict("passed", passed=passed, total=total, seconds=self._cpu_s))

    def _run(self, text: str, extra: Sequence[str], limits: RunLimits, may_prove: Callable[[], bool]) -> ToolRun:
        run = self._runner.run(text, extra, limits, may_prove)
        self._cpu_s += run.cpu_s
        return run

    def _may_be_proved(self) -> bool:
        """The guards' decision, taken once the program has parsed and resolved."""
        case, self._violation = self._case, None
        if case.given is None:
            return True
        if case.keeps and case.keep is None:
            self._violation = Violation("program-changed", "the code to keep cannot be read: what resolves is another")
            return False
        try:
            self._violation, self._facts = guards.check(case.given, case.text, case.protect, self._own.holes, case.keep)
        except Unreadable as fault:
            self._violation = Violation("unreadable", str(fault))
        return self._violation is None

    def _probe(self, text: str, extra: Sequence[str]) -> ToolRun:
        """Run a probing program without the guards; once more with the candidate's own limits if it reaches one."""
        own = self._case.limits
        short = RunLimits(min(own.cpu_s, tool.PROBE_CPU_S), own.wall_s, own.memory_mb)
        run = self._run(text, extra, short, lambda: True)
        if run.end == "done":
            return run
        return self._run(text, extra, RunLimits(own.cpu_s, 2 * own.wall_s, own.memory_mb), lambda: True)

    def _rejected(self, violation: Violation) -> Judgement:
        return Judgement(Verdict("rejected", rule=violation.rule, seconds=self._cpu_s, log=violation.log))

    def _ended(self, run: ToolRun, cacheable: bool) -> Judgement:
        limits = self._case.limits
        bucket, log = {
            "cpu": ("timeout", f"stopped at its CPU limit of {limits.cpu_s:g} s"),
            "wall": ("timeout", f"stopped at its wall clock limit, twice {limits.wall_s:g} s"),
            "memory": ("memory", f"used more than {limits.memory_mb} MB"),
            "crash": ("runtime_error", "Dafny broke down on it twice: " + run.output[-300:].strip()),
        }[run.end]
        return Judgement(Verdict("failed", bucket, seconds=self._cpu_s, log=log), cacheable)


def _counts(report: Report, given: ProgramDeclarations | None) -> tuple[int, int]:
    """(proved, all) procedures of the given declarations; one more of all if anything else failed."""
    labels = given.labels if given is not None else frozenset()
    theirs = [one.result == "verified" for one in report.procedures if one.name in labels]
    others = [one.result == "verified" for one in report.procedures if one.name not in labels]
    proved, total = sum(theirs), len(theirs)
    return proved, total + (not report.proved and (not all(others) or proved == total))


@dataclass(frozen=True)
class Proof:
    """A candidate that the tool calls proved. `run` runs further programs within the candidate's limits, `read` parses
    their output; `named`: the tool's log names each body as `guards.labelled` does."""

    given: ProgramDeclarations
    text: str
    facts: Facts
    report: Report
    named: bool
    run: Callable[[str, Sequence[str]], ToolRun]
    read: Callable[[str, int], Report]

    def objection(
        self, careful: Sequence[str], probing: Sequence[str], searching: Sequence[str], every: bool
    ) -> Violation | ToolRun | None:
        """Return why it is not accepted, or a Run that reached a limit, which leaves a doubt.

        Args:
            careful: options of the run that proved it.
            probing: further options of a run that only searches for false, with a small count of resources.
            searching: the same with the count of the proof, for the bodies whose probes fell to the small one.
            every: probe all bodies, not only those missing in the log.
        """
        quiet: set[str] = set()
        if self.named:  # Labels of which fewer bodies are reported as verified than promise something.
            ends = _ends(self.report)
            promising = self.facts.promising.items()
            quiet = {label for label, count in promising if ends.get(label, []).count("verified") < count}
        elif not self.report.procedures and self.facts.promising:
            return Violation("unproved", "Dafny proved nothing where there is something to prove")
        if not (quiet or every):
            return None
        text, labels = probed(self.text, lambda label: every or label in quiet)
        run = self.run(text, [*careful, *probing])
        if run.end != "done":
            return run
        report = self.read(run.output, run.code)
        ends = _ends(report)
        if self.named:
            # Each probe is in the log, and shows as an error if the log had no line before.
            missing = {label for label, count in labels.items() if len(ends.get(label, ())) < count}
            missing |= {one for one in quiet if not all(end.startswith("error") for end in ends.get(one) or [""])}
            if missing:
                return Violation("unproved", f"Dafny's log does not report the body of {min(missing)} as verified")
        found = self._vacuous(_proved(report, labels), probing)
        # Probes that fell to a limit.
        late = {one for one in labels if not all(end.startswith(("verified", "error")) for end in ends.get(one, ()))}
        if late and not found:
            run = self.run(probed(self.text, late.__contains__)[0], [*careful, *searching])
            found = self._vacuous(_proved(self.read(run.output, run.code), late), probing)
        if found:
            return Violation("vacuous", f"`assert false` is proved at the end of {found}")
        return None if run.end == "done" else run

    def _vacuous(self, falsified: Sequence[str], probing: Sequence[str]) -> str:
        given = [label for label in falsified if label in self.given.labels]
        new = [label for label in falsified if label not in self.given.labels and label in self.facts.unconditional]
        if given and self.given.text:
            run = self.run(contract_probe(self.given.text, given), probing)
            if run.end == "done":
                excused = _proved(self.read(run.output, run.code), given)
                given = [label for label in given if label not in excused]
        return next(iter(given + new), "")


def _ends(report: Report) -> dict[str, list[str]]:
    """How each body's proof ended, by label; a label may stand for several bodies."""
    found: dict[str, list[str]] = {}
    for procedure in report.procedures:
        if procedure.part == "Impl":
            found.setdefault(procedure.name.removesuffix("#"), []).append(procedure.result)
    return found


def _proved(report: Report, labels: Iterable[str]) -> list[str]:
    """Labels one of whose probes is proved."""
    ends = _ends(report)
    return sorted(label for label in labels if "verified" in ends.get(label, ()))


def probed(text: str, wanted: Callable[[str], bool] = lambda label: True) -> tuple[str, Counter[str]]:
    """The program with probes in the bodies of the callables with wanted labels, and the number of bodies of each."""
    before: dict[int, str] = {}
    labels: Counter[str] = Counter()
    words = tokens(text)
    for label, one in labelled(parse(text)):
        # A callable that need not end may have an end that is never reached.
        endless = any(clause.word == "decreases" and clause.text == ("*",) for clause in one.clauses)
        if one.kind in PROVED and one.body is not None and not endless and wanted(label):
            labels[label] += 1
            inside = range(one.end - len(one.body), one.end)
            before |= {at: _PROBE for at in inside if words[at] in ("return", "yield")} | {one.end: _PROBE}
    return with_inserted(text, before), labels


def contract_probe(text: str, labels: Collection[str]) -> str:
    """The program whose bodies of those labels assume their own `ensures` clauses (lemmas) and then assert false."""
    put: dict[int, str] = {}
    left_out: set[int] = set()
    words = tokens(text)
    for label, one in labelled(parse(text)):
        if label not in labels or one.kind not in PROVED:
            continue
        promised = [clause.text for clause in one.clauses if clause.word == "ensures" and one.kind == "lemma"]
        body = "".join(f"assume {' '.join(promise)}; " for promise in promised) + "assert false; "
        if one.body is None:
            put[one.stop + (words[one.stop : one.stop + 1] == [";"])] = f" {{ {body}}} "
        else:
            put[one.end] = f" {body}"
            left_out |= set(range(one.end - len(one.body), one.end))
    return with_inserted(text, put, left_out)
