"""Verifies Dafny programs: `passed` is a proof of the given program's specification, and nothing less.

Dafny decides whether a program is proved, the guards whether it is still the given program and keeps the code that the
problem requires. A program is parsed and resolved first; then the guards check it, and only programs that they accept are proved.
Buckets: `parse` and `resolve` as Dafny reports; `verify` if an obligation is known to be unproved; `out_of_resource` if the prover
reached its count of resources; `timeout` at the limits of CPU or wall time; `memory`; `runtime_error` if Dafny itself crashed, twice.

No set of options makes Dafny 4.11 sound (rlvr_exp/docs/dafny.md has the table), so a candidate is proved several times: with the
default resolver, with `--type-system-refresh`, and, if it adds or changes loops, with `--manual-triggers` or
`--isolate-assertions`. A lemma that a candidate adds gets no automatic induction if its requirements call something. The level of the task (`DafnyProblem.strength`) widens or narrows this to what its
reference passes. The second and third proof may fail in callables that the candidate left as they are.

Score: of the given program's declarations, the share that is proved; any other failure counts as one more declaration. So proving
helpers does not raise the score.

A proved program is accepted only if Dafny reported each of its callables, and if false is not proved as well. With `vacuity`, each
body that the candidate wrote is probed with `assert false` at its end and before each `return` and `yield`, so that the body stays
proved only if no exit can be reached. A given contract that implies false is no fault of the candidate: `contract_probe` finds
that out from the given program. A new lemma or method that proves whatever it is asked, such as `lemma Any(b: bool) ensures b`,
proves no false in its own body: `goal_probes` calls it about a fresh predicate, of which nothing is known.

Not covered: unsoundness of Dafny, Boogie or z3 that none of this stops, and a specification that says too little.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from queue import SimpleQueue
from typing import Any, cast

from rlvr_exp.config.verifier import Cache, Sandbox
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.dafny import guards, tool
from rlvr_exp.domains.dafny.given import result_of
from rlvr_exp.domains.dafny.guards import PROVED, Facts, ProgramDeclarations, Violation, labelled, read_declarations
from rlvr_exp.domains.dafny.induction import calls_in_requirements, manual_induction
from rlvr_exp.domains.dafny.options import DafnyVerifierOptions
from rlvr_exp.domains.dafny.problem import DafnyProblem, Protect, Strength
from rlvr_exp.domains.dafny.prune import prune
from rlvr_exp.domains.dafny.self_calls import with_results
from rlvr_exp.domains.dafny.soundness import without_limits
from rlvr_exp.domains.dafny.syntax import CALLABLES, Declaration, Unreadable, parse
from rlvr_exp.domains.dafny.tokens import has_directive, plain, printed, tokens, with_inserted
from rlvr_exp.domains.dafny.tool import Diagnostic, RunLimits, Runner, ToolRun
from rlvr_exp.domains.dafny.torn import untorn
from rlvr_exp.domains.dafny.variance import covariant
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.pool import usable
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.engine import CachedVerifier, Judgement, VerificationJob

_LONGEST = 400_000
"""Characters of a candidate; the longest program of DafnyBench has 35,000."""
_PROBE = " assert false; "
_UNPROVEN = ("assume", "no body", "bodyless", "not been verified", "{:axiom}")
"""Words of the warnings that mark unproven code."""
_NOTHING = read_declarations("")
_SHOWN = 3
"""Errors that a log names."""


@dataclass(frozen=True)
class _Case:
    """One candidate to judge. `given` is None if the given program cannot be parsed."""

    given: ProgramDeclarations | None
    keeps: bool
    """Whether the problem has code to keep: `keep`, or None if it cannot be parsed."""
    keep: ProgramDeclarations | None
    program: str
    text: str
    limits: RunLimits
    protect: Protect
    strength: Strength
    source: str
    """The candidate with its comments."""
    kept: str
    """The given program whose annotations are never pruned."""
    prunes: bool


class DafnyVerifier(CachedVerifier, DafnyVerifierOptions):
    """Judges `DafnyProblem`s.

    Args:
        sandbox: `workers`, `require`, and the limits if this verifier's own are 0; `level=strict` gives every
            candidate its own process.

    `protect` is used if the problem does not set it. `vacuity` is checked once for each content, with the cached verdict.
    """

    runs_candidates = False
    name = "dafny"
    version = "12"

    def __init__(self, sandbox: Sandbox, cache: Cache | None = None, **given: Any):
        super().__init__(cache, sandbox, **given)
        self._tool = tool.find(self.path, self.image)
        self._limits = RunLimits(
            self.cpu_s or sandbox.cpu_s, self.wall_s or sandbox.wall_s, self.memory_mb or sandbox.memory_mb
        )
        size = sandbox.workers or usable()
        self._runners: SimpleQueue[Runner] = SimpleQueue()
        warm = self.warm and sandbox.level != "strict"
        self._all = [Runner(self._tool, self.rlimit, warm) for _ in range(size)]
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
        shown = problem.program
        if _read_declarations(shown) is None:
            shown = untorn(shown, candidate.text) or shown
        text, program = _seen(candidate.text), _seen(shown)
        keep = None if problem.keep is None else _seen(problem.keep)
        named, usual = problem.limits, self._limits
        limits = RunLimits(named.cpu_s or usual.cpu_s, named.wall_s or usual.wall_s, named.memory_mb or usual.memory_mb)
        protect = problem.protect or cast(Protect, self.protect)
        strength = problem.strength or "refresh"
        prunes = self.prune and (keep is not None or problem.protect != "specification")
        own = [protect, strength, self.holes, self.vacuity, self.rlimit, prunes, *astuple(limits)]
        content = wire.encode([_bytes(program), text, own, None if keep is None else _bytes(keep)])
        given, kept = _read_declarations(shown), _read_declarations(problem.keep)
        source, whole = plain(candidate.text), program if keep is None else keep
        case = _Case(given, keep is not None, kept, program, text, limits, protect, strength, source, whole, prunes)
        return VerificationJob(content, case, request)

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

    def _with_runner(self, work: Callable[[Runner], Any]) -> Any:
        runner = self._runners.get()
        try:
            return work(runner)
        finally:
            self._runners.put(runner)

    def _judge(self, case: _Case) -> Judgement:
        try:
            return self._with_runner(lambda runner: self._judged(runner, case))
        except Lost as fault:
            return Judgement(Verdict("no_verdict", log=str(fault)), cacheable=False)

    def _judged(self, runner: Runner, case: _Case) -> Judgement:
        run = _CandidateRun(self, runner, case)
        judgement = run.judge()
        return self._pruned(runner, case, judgement, run.errors) if case.prunes else judgement

    def _pruned(self, runner: Runner, case: _Case, whole: Judgement, errors: Sequence[Diagnostic]) -> Judgement:
        """The verdict on the candidate without annotations that fail; its own verdict if pruning does not prove it."""
        judged: list[Judgement] = []

        def judge(text: str) -> tuple[Judgement, Sequence[Diagnostic]]:
            run = _CandidateRun(self, runner, replace(case, text=_seen(text)))
            judged.append(run.judge())
            return judged[-1], run.errors

        found = prune(case.source, case.kept, errors, judge)
        seconds = sum(one.verdict.seconds for one in judged)
        verdict, dropped = whole.verdict, tuple[str, ...]()
        if found is not None and found.result.verdict.outcome == "passed":
            verdict, dropped = found.result.verdict, found.dropped
            log = "; ".join(" ".join(one.split()).rstrip(";") for one in dropped)
            verdict = replace(verdict, revised=found.text, log=f"pruned: {log}")
        measures = {
            "pruned": float(bool(dropped)),
            "dropped_annotations": float(len(dropped)),
            "pruning_runs": float(len(judged)),
            "pruning_seconds": seconds,
        }
        verdict = replace(verdict, seconds=whole.verdict.seconds + seconds, measures=measures)
        return Judgement(verdict, all(one.cacheable for one in (whole, *judged)))


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

    def __init__(self, verifier: DafnyVerifier, runner: Runner, case: _Case):
        self._own, self._runner, self._case = verifier, runner, case
        self._violation: Violation | None = None
        self._facts = Facts()
        self._holes = verifier.holes
        self._cpu_s = 0.0
        self._contradicts = _contradicts(case)
        self.errors: tuple[Diagnostic, ...] = ()
        """Errors of the proof that failed."""

    def judge(self) -> Judgement:
        """Prove the program under each set of options in turn, then look for reasons not to accept the proof."""
        given = self._case.given
        text = self._without_induction(self._case.text)
        run = self._careful(text, (), self._may_be_proved)
        if self._violation is not None and self._violation.rule == "hole" and self._open():
            run = self._careful(text, (), self._may_be_proved)
        if run.end == "stopped" and self._violation is not None:
            return self._rejected(self._violation)
        passed, total = _counts(run, given)
        if not run.verified:
            self.errors = run.errors
            return self._failed(run, "", passed, total)
        if given is None:
            fault = Violation("unreadable", "the given program itself cannot be read: nothing is protected")
            return self._rejected(fault)
        if objection := self._objection(run):
            return self._rejected(objection)
        for alternatives in self._further():
            for options in alternatives:
                run = self._careful(text, options, lambda: True)
                if holds := self._holds(run, options):
                    break
            if not holds:
                self.errors = run.errors
                return self._failed(run, f"with {' '.join(options)}, ", passed, total)
        if self._own.vacuity and (found := self._vacuous(given, text)):
            return self._rejected(found) if isinstance(found, Violation) else self._failed(found, "in a probe, ", 0, 0)
        return Judgement(Verdict("passed", passed=passed, total=total, seconds=self._cpu_s))

    def _open(self) -> bool:
        """Allow given declarations without bodies if the given program has other code to prove: then they are assumptions."""
        run = self._careful(self._case.program, (), lambda: True)
        self._holes = run.end != "done" or run.verified
        return not self._holes

    def _without_induction(self, text: str) -> str:
        """The program without automatic induction: in all lemmas of a strict task, else in those that the candidate added, but for
        lemmas whose requirements call nothing, since dafny#6366 needs such a call. With covariant datatypes, and without calls of
        functions in their own promises."""
        given, strict = self._case.given, self._case.strength == "strict"
        known = frozenset() if given is None or self._contradicts else given.labels
        try:
            added = {label: one for label, one in labelled(parse(text)) if label not in known}
            text = with_results(text)
            return covariant(
                manual_induction(text, lambda label: strict or (label in added and calls_in_requirements(added[label])))
            )
        except Unreadable:
            return text

    def _changed(self) -> Iterator[tuple[str, Declaration]]:
        """The callables with a body that are not, as they are, in the given program; all of them if the answer is that program, as
        when a reference program is checked."""
        given = self._case.given
        before = [] if given is None or self._case.text == self._case.program else labelled(given.declarations)
        known = {(label, one.body, one.compiled, one.clauses) for label, one in before}
        for label, one in labelled(parse(self._case.text)):
            if one.body is not None and (label, one.body, one.compiled, one.clauses) not in known:
                yield label, one

    def _further(self) -> Iterator[tuple[tuple[str, ...], ...]]:
        """Sets of options of further proofs; of each, one must hold."""
        if self._case.strength != "default":
            yield (tool.REFRESH,)
        if any({"while", "for"} & {*(one.body or ()), *(one.compiled or ())} for _, one in self._changed()):
            yield tool.MANUAL_TRIGGERS, tool.ISOLATED  # Either refuses dafny#6158, and honest proofs differ.

    def _holds(self, run: ToolRun, options: tuple[str, ...]) -> bool:
        """Whether all proofs hold, but for those of callables that the candidate left as they are: the default options proved
        them. Options under which the given program itself does not resolve, as it does by default, do not count."""
        given = self._case.given
        if given is not None and run.end == "resolve":
            ends = [self._careful(self._case.program, each, lambda: False).end for each in ((), options)]
            return ends == ["stopped", "resolve"]
        if run.verified or given is None or run.end != "done" or not run.failed:
            return run.verified
        changed = {_last(label) for label, _ in self._changed()}
        known = {_last(label) for label in given.labels}
        return all(name in known and name not in changed for name in run.failed)

    def _careful(self, text: str, options: tuple[str, ...], may_prove: Callable[[], bool]) -> ToolRun:
        """Run a program; once more after a crash, and with twice the time after it reached its wall clock limit."""
        limits = self._case.limits
        run = self._run(text, options, limits, may_prove)
        if run.end == "crash":
            run = self._run(text, options, limits, may_prove)
        if run.end == "wall":
            longer = RunLimits(limits.cpu_s, 2 * limits.wall_s, limits.memory_mb)
            run = self._run(text, options, longer, may_prove)
        return run

    def _run(self, text: str, options: tuple[str, ...], limits: RunLimits, may_prove: Callable[[], bool]) -> ToolRun:
        run = self._runner.run(text, options, limits, may_prove)
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
            self._violation, self._facts = guards.check(case.given, case.text, case.protect, self._holes, case.keep)
            if self._violation is None and self._contradicts:
                self._violation, _ = guards.check(_NOTHING, case.text, "specification")
        except Unreadable as fault:
            self._violation = Violation("unreadable", str(fault))
        return self._violation is None

    def _objection(self, run: ToolRun) -> Violation | None:
        """Callables that Dafny did not report as proved, warnings of unproven code that the given program does not have, and
        promises of false."""
        bodies = [(label, one) for label, one in labelled(parse(self._case.text)) if one.body is not None]
        for label, one in bodies:
            if guards.promises_false(one) and not any("requires" in clause.word for clause in one.clauses):
                return Violation("vacuous", f"`{label}` promises false and requires nothing")
        written = Counter(_last(label) for label, _ in bodies)
        if missing := written - run.proved:
            name = min(missing)
            return Violation(
                "unproved", f"Dafny does not report `{name}` as verified; declare it outside of other code"
            )
        lines, known = self._case.text.split("\n"), {line.strip() for line in self._case.program.split("\n")}
        for warning in run.warnings:
            if any(word in warning.text for word in _UNPROVEN) and lines[warning.line - 1].strip() not in known:
                return Violation("no-body", f"{warning}; prove it instead")
        return None

    def _vacuous(self, given: ProgramDeclarations, text: str) -> Violation | ToolRun | None:
        """The body, or the new lemma, that proves too much; a run that found no answer."""
        changed = {label for label, _ in self._changed()}
        shown, labels, goals = probed(text, changed.__contains__, lambda label: label not in given.labels)
        if not labels and not goals:
            return None
        run = self._careful(shown, (), lambda: True)
        if run.end in ("parse", "resolve") and goals:  # A signature that the probes cannot call.
            shown, labels, goals = probed(text, changed.__contains__, lambda label: False)
            run = self._careful(shown, (), lambda: True)
        if run.end != "done":
            return run
        for name, label in goals.items():
            if run.proved[name] and not run.proved[f"{name}_control"]:
                return Violation("vacuous", f"`{label}` proves a predicate of which nothing is known")
        alone = [label for label in labels if run.proved[_last(label)] > _others(labels, label, run)]
        known = [label for label in alone if label in given.labels]
        new = [label for label in alone if label not in given.labels and label in self._facts.unconditional]
        if known and given.text:
            shown, _, _ = probed(given.text, known.__contains__, lambda label: False)
            run = self._careful(shown, (), lambda: True)
            if run.end == "done":  # What a given body assumes itself is no fault of the candidate either.
                known = [label for label in known if not run.proved[_last(label)]]
        if known and given.text:
            assumed = given.text + _undefined(parse(self._case.text), given.missing)
            run = self._careful(contract_probe(assumed, known), (), lambda: True)
            if run.end == "done":
                known = [label for label in known if not run.proved[_last(label)]]
        found = next(iter(known + new), "")
        return Violation("vacuous", f"`assert false` is proved at the end of {found}") if found else None

    def _rejected(self, violation: Violation) -> Judgement:
        return Judgement(Verdict("rejected", rule=violation.rule, seconds=self._cpu_s, log=violation.log))

    def _failed(self, run: ToolRun, lead: str, passed: int, total: int) -> Judgement:
        limits = self._case.limits
        log = lead + "\n".join(map(str, run.errors[:_SHOWN])) if run.errors else lead + "a proof does not hold"
        bucket, log = {
            "parse": ("parse", log),
            "resolve": ("resolve", log),
            "done": ("out_of_resource" if run.exhausted else "verify", log),
            "cpu": ("timeout", f"{lead}stopped at its CPU limit of {limits.cpu_s:g} s"),
            "wall": ("timeout", f"{lead}stopped at its wall clock limit, twice {limits.wall_s:g} s"),
            "memory": ("memory", f"{lead}used more than {limits.memory_mb} MB"),
            "crash": ("runtime_error", f"{lead}Dafny broke down on it twice: {run.fault}"),
        }[run.end]
        proved = (passed, total) if run.end == "done" else (0, 0)
        verdict = Verdict("failed", bucket, passed=proved[0], total=proved[1], seconds=self._cpu_s, log=log)
        return Judgement(verdict, cacheable=run.end != "wall")


def _contradicts(case: _Case) -> bool:
    """Whether the candidate proves false where the given program asks for it. The given text could be unsound itself, so all text
    counts as new."""
    given = () if case.given is None else labelled(case.given.declarations)
    wanted = {label for label, one in given if guards.promises_false(one)}
    try:
        found = labelled(parse(case.text)) if wanted else ()
        return any(label in wanted and one.body is not None for label, one in found)
    except Unreadable:
        return False


def _last(label: str) -> str:
    """The name of a labelled declaration in a run's counts."""
    name = label.rpartition(".")[2]
    return "constructor" if name == "_ctor" else name


def _counts(run: ToolRun, given: ProgramDeclarations | None) -> tuple[int, int]:
    """(proved, all) declarations of the given program; one more of all if anything else failed."""
    names = Counter(_last(label) for label in given.labels) if given is not None else Counter()
    proved, failed = run.proved & names, run.failed & names
    whole = proved.total() + failed.total()
    others = bool(run.failed - failed) or (not run.verified and not failed)
    return proved.total(), whole + others


def _others(labels: Mapping[str, int], label: str, run: ToolRun) -> int:
    """How many proved declarations of a label's name are not the probed ones."""
    name = _last(label)
    probes = sum(number for other, number in labels.items() if _last(other) == name)
    return max(0, run.proved[name] + run.failed[name] - probes)


def probed(
    text: str, bodies: Callable[[str], bool], goals: Callable[[str], bool]
) -> tuple[str, Counter[str], dict[str, str]]:
    """The program with probes: the text, the number of probed bodies of each label, and the goals' names with their labels.

    Args:
        bodies: the labels of callables whose exits get `assert false`.
        goals: the labels of callables that are called about a fresh predicate, by a probe that follows them. It asserts the
            predicate after a call with the predicate in place of each boolean argument. Its control makes no call: if the control
            holds too, the callable's own requirements are the reason.
    """
    before: dict[int, str] = {}
    labels: Counter[str] = Counter()
    names: dict[str, str] = {}
    words = tokens(text)
    for label, one in labelled(parse(text)):
        if one.body is None or one.kind not in CALLABLES:
            continue
        # A callable that need not end may have an end that is never reached.
        endless = any(clause.word == "decreases" and clause.text == ("*",) for clause in one.clauses)
        if one.kind in PROVED and not endless and bodies(label):
            labels[label] += 1
            inside = range(one.end - len(one.body), one.end)
            before |= {at: _PROBE for at in inside if words[at] in ("return", "yield")} | {one.end: _PROBE}
        promises = any(clause.word == "ensures" for clause in one.clauses)
        if promises and one.kind in ("lemma", "method", "function") and "(" in one.head and goals(label):
            names[name := f"{_GOAL}{len(names)}"] = label
            before[one.stop] = before.get(one.stop, "") + _goal_probe(one, name)
    return with_inserted(text, before), labels, names


_GOAL = "rlvr_goal_"


def _goal_probe(one: Declaration, name: str) -> str:
    """A predicate of which nothing is known, a probe that calls a callable about it, and the probe's control."""
    called = one.name.rpartition(".")[2]
    first = max(at for at, word in enumerate(one.head) if word == called and at < one.head.index("("))
    opening = one.head.index("(", first)
    generic = " ".join(one.head[first + 1 : opening])
    lists = _parameter_lists(one.head[opening:])
    parameters = [_parameter(words) for words in lists[0]]
    results = len(lists[1]) if len(lists) > 1 and "returns" in one.head else 0
    static = "static " if "static" in one.head else ""
    assumed = "".join(f"assume {{:axiom}} {each} == {name}_is(); " for each, type_ in parameters if type_ == "bool")
    call = f"{called}({', '.join(each for each, _ in parameters)});"
    if one.kind == "function":
        call = f"var rlvr_result := {call}"
    elif results:
        call = f"var {', '.join(f'rlvr_result_{number}' for number in range(results))} := {call}"
    kept = " ".join(
        f"{clause.word} {' '.join(clause.text)}" for clause in one.clauses if clause.word in ("requires", "modifies")
    )
    declared = ", ".join(f"{each}: {type_}" for each, type_ in parameters)
    kind = "method" if one.kind == "method" and not one.ghost else "ghost method"
    head = f"{generic}({declared}) {kept}"
    return (
        f" {static}ghost predicate {name}_is() "
        f"{static}{kind} {name}{head} {{ {assumed}{call} assert {name}_is(); }} "
        f"{static}{kind} {name}_control{head} {{ {assumed}assert {name}_is(); }} "
    )


def _parameter_lists(words: Sequence[str]) -> list[list[list[str]]]:
    """The parenthesised lists at the top level of a head, each cut at its commas."""
    found: list[list[list[str]]] = []
    depth = 0
    for word in words:
        if word in (")", "]", "}", ">"):
            depth -= 1
        if word == "(" and depth == 0:
            found.append([[]])
        elif depth == 1 and word == ",":
            found[-1].append([])
        elif depth:
            found[-1][-1].append(word)
        if word in ("(", "[", "{", "<"):
            depth += 1
    return [[each for each in one if each] for one in found]


def _parameter(words: Sequence[str]) -> tuple[str, str]:
    """The name and the type of one parameter."""
    end = words.index(":=") if ":=" in words else len(words)
    colon = words.index(":") if ":" in words else end
    return words[colon - 1], " ".join(words[colon + 1 : end])


_PLAIN_TYPES = frozenset(
    ("int", "bool", "real", "char", "string", "seq", "set", "multiset", "map", "<", ">", ",", ":", "(", ")")
)


def _undefined(declarations: Sequence[Declaration], names: Collection[str]) -> str:
    """The functions of those names, of which nothing is known: their declarations without `ensures` clauses and bodies. Without
    those whose result types say something, such as nat."""
    text = ""
    for one in declarations:
        if one.kind == "function" and one.name in names and _PLAIN_TYPES.issuperset(result_of(one.head)):
            kept = [word for clause in one.clauses if clause.word != "ensures" for word in (clause.word, *clause.text)]
            text += f"\n{' '.join((*one.head, *kept))}"
    return text


def contract_probe(text: str, labels: Collection[str]) -> str:
    """The program whose bodies of those labels assume their own `ensures` clauses (lemmas that require something) and then assert
    false."""
    put: dict[int, str] = {}
    left_out: set[int] = set()
    words = tokens(text)
    for label, one in labelled(parse(text)):
        if label not in labels or one.kind not in PROVED:
            continue
        conditional = one.kind == "lemma" and any(clause.word == "requires" for clause in one.clauses)
        promised = [clause.text for clause in one.clauses if clause.word == "ensures" and conditional]
        body = "".join(f"assume {' '.join(promise)}; " for promise in promised) + "assert false; "
        if one.body is None:
            put[one.stop + (words[one.stop : one.stop + 1] == [";"])] = f" {{ {body}}} "
        else:
            put[one.end] = f" {body}"
            left_out |= set(range(one.end - len(one.body), one.end))
    return with_inserted(text, put, left_out)
