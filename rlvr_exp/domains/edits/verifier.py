"""Verifies edits: the action is parsed here, applied in the sandbox, and its result compared here or handed to tests. A
candidate that is the edited text itself (`AstGrepProblem.answer`) is compared or tested alike.

Verdicts on an edit. `failed`: `parse`, not an action; `resolve`, a rule that ast-grep does not take (an unknown kind or
language, a pattern that does not parse, an undefined variable); `wrong_answer`, another text, no match, or rules although
nothing had to change and no tests decide, which only `done` says; `timeout`, `memory`, `output_limit`; `runtime_error`,
rules that undo one another, or a crash of the engine. `rejected`: an action that reaches for files, projects, parsers or
YAML tags, or whose aliases expand without bound. A rule that names one place and writes the complete answer is no cheat:
it does not know the answer.

The wanted text and the tests never enter the process that applies the rules. With tests, the edited text is a solution
judged by the pytest verifier (with its default options), whose verdict is returned. Under the option `untouched` a pass
also demands that the functions and classes that the wanted text leaves as they were are unchanged.

Not covered: `text_loose` and `syntax` accept differences in blanks; rules are matched against one text without a name, so `files` and `ignores` have no effect.
"""

import importlib.util
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any

from rlvr_exp.config.verifier import Cache, Sandbox
from rlvr_exp.core.errors import InputError, InputProblem, RlvrError
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.domains.edits import options
from rlvr_exp.domains.edits.action import DONE, Action, edited_line_ends, parse_action
from rlvr_exp.domains.edits.engines import SUPPRESSES, find_program
from rlvr_exp.domains.edits.measures import (
    APPLIED,
    READ,
    TAKEN,
    UNREAD,
    equal_but_blanks,
    first_difference,
    measured,
)
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.schema import ENDINGS, ActionFault, language_of
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.jobs import Job, JobLimits, JobResult, frames
from rlvr_exp.sandbox.pool import Pool
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.verifiers.base import Execution, Executor, Request, Verdict, Verifier
from rlvr_exp.verifiers.engine import BUCKET_OF_END, CachedVerifier, Judgement, VerificationJob
from rlvr_exp.verifiers.futures import completed_future, then
from rlvr_exp.verifiers.suite.verifier import PytestSuite, suite_tool

MAX_KB = 512
"""KiB, in UTF-8, of a text to edit, and of the edited text."""
_RESULT_KB = 6 * MAX_KB + 64
"""Of a record in ASCII: a character of a text takes up to six times its bytes there."""
_DIGESTS = 4096
"""Wanted texts whose syntax trees are cached."""
_BUCKET_OF_FAULT = {
    "resolve": "resolve",
    "loop": "runtime_error",
    "crash": "runtime_error",
    "output": "output_limit",
    "memory": "memory",
}
_REMEDY = "pip install 'rlvr_exp[ast-grep]'"
_PROBE_S = 60


@dataclass(frozen=True)
class Tools:
    """`versions`: by name, for cache keys and the manifest."""

    program: str
    """Absolute path."""
    versions: tuple[tuple[str, str], ...]


@cache
def find_tools() -> Tools:
    """Both tools of this installation.

    Raises:
        InputError: one of them is missing or does not start.
    """
    if importlib.util.find_spec("ast_grep_py") is None:
        raise InputError(InputProblem("verifier=ast_grep", "the package ast_grep_py is not installed", remedy=_REMEDY))
    program = find_program()
    if program is None:
        raise InputError(InputProblem("verifier=ast_grep", "the program ast-grep is not installed", remedy=_REMEDY))
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_PROBE_S, check=True)
    except (OSError, subprocess.SubprocessError) as fault:
        raise InputError(
            InputProblem("verifier=ast_grep", "ast-grep does not start", str(fault), remedy=_REMEDY)
        ) from fault
    names = (("ast-grep-py", version("ast-grep-py")), ("ast-grep", done.stdout.split()[-1]))
    return Tools(program, names)


class AstGrep(CachedVerifier, Executor, options.AstGrep):
    """Judges `AstGrepProblem`s.

    Args:
        sandbox: workers, level and the limits of a candidate whose problem names none.

    With compare="syntax", a text that does not parse without errors has no tree: an edited text is then wrong, and a wanted
    text is compared as with compare="text".

    Raises:
        InputError: ast_grep_py or the ast-grep program is missing.
    """

    name = "ast_grep"
    version = f"7.{PytestSuite.version}"

    def __init__(self, sandbox: Sandbox, cache: Cache | None = None, **given: Any):
        self._tools = find_tools()
        super().__init__(cache, sandbox, **given)
        self._cache_options = cache
        self._limits = replace(JobLimits.of(sandbox), result_kb=_RESULT_KB)
        self._pool = Pool.of(sandbox, harness="rlvr_exp.domains.edits.harness", packages=True, processes=1)
        self._digests: OrderedDict[tuple[str, str], Future[JobResult]] = OrderedDict()
        self._tests: Verifier | None = None
        self._guard = threading.Lock()

    def prepare(self, request: Request) -> Verdict | VerificationJob:
        problem, candidate = request.problem, request.candidate
        if broken := _fault_of(problem):
            return Verdict("no_verdict", log=broken)
        if candidate.text is None:
            return measured(_failed("parse", candidate.fault or f"no {problem.answer} in the answer"), problem, UNREAD)
        limits = self._limits.named_by(problem.limits)
        if problem.answer == "text":
            if len(candidate.text.encode(errors="replace")) > MAX_KB << 10:
                return measured(_failed("output_limit", f"a text of more than {MAX_KB} KiB"), problem, UNREAD)
            return self._work(request, candidate.text, candidate.text, None, limits)
        try:
            action = parse_action(candidate.text, problem.language)
        except ActionFault as fault:
            if fault.kind == "rejected":
                return measured(Verdict("rejected", rule=fault.rule, total=1, log=str(fault)), problem, UNREAD)
            return measured(_failed(fault.kind, str(fault)), problem, READ if fault.kind == "resolve" else UNREAD)
        if action.steps and not action.edits:
            failed = _failed("wrong_answer", "no rule has a `fix`, so nothing changes")
            return measured(failed, problem, READ, action=action)
        return self._work(request, action.canonical, problem.before, action, limits)

    def start(self, work: VerificationJob) -> Future[Judgement]:
        text, action, limits = work.payload
        problem: AstGrepProblem = work.request.problem
        tree = language_of(problem.language) if self.compare == "syntax" and not problem.tests else ""
        job = Job(self._payload(text, action, tree), limits)
        return then(self._pool.submit(job), lambda result: self._judge(problem, result, tree, action))

    def execute(self, request: Request) -> Future[Execution]:
        """The verdict, and the edited text, if there is one, as its only output."""
        work = self.prepare(request)
        if isinstance(work, Verdict):
            return completed_future(Execution(work, ()))
        text, action, limits = work.payload
        applied = self._pool.submit(Job(self._payload(text, action, ""), limits))

        def with_text(verdict: Verdict, result: JobResult) -> Execution:
            got = _edited(result)
            return Execution(verdict, () if isinstance(got, Verdict) else (_with_line_ends(got[0], request.problem),))

        return then(self.submit(request), lambda verdict: then(applied, lambda result: with_text(verdict, result)))

    def edited_text(self, before: str, action: Action) -> str:
        """What an action makes of a text, in the sandbox.

        Raises:
            ActionFault: ast-grep refuses it, or it breaks a limit.
            RlvrError: ast-grep was not run.
        """
        got = _edited(self._pool.submit(Job(self._payload(before, action, ""), self._limits)).result())
        if isinstance(got, Verdict) and got.outcome == "no_verdict":
            raise RlvrError(got.log)
        if isinstance(got, Verdict):
            raise ActionFault(got.log, "resolve")
        return got[0]

    def tool(self) -> Mapping[str, str]:
        return {**dict(self._tools.versions), **suite_tool()}

    def isolation(self) -> dict[str, Any]:
        return self._pool.isolation()

    def close(self) -> None:
        self._pool.close()
        if self._tests is not None:
            self._tests.close()
        super().close()

    def _work(
        self, request: Request, canonical: str, text: str, action: Action | None, limits: JobLimits
    ) -> VerificationJob:
        suppressible = [rule.suppressible for rule in action.rules] if action and SUPPRESSES in text + canonical else []
        options = [self.compare, self.max_passes, self.untouched, suppressible]
        content = content_hash([canonical, request.problem, *options, repr(limits)])
        return VerificationJob(content.encode(), (text, action, limits), request)

    def _payload(self, text: str, action: Action | None, tree: str) -> bytes:
        steps = [
            (step[0].language, ENDINGS[step[0].language], [rule.config for rule in step], step[0].suppressible)
            for step in (action.steps if action else ())
        ]
        return pack(text, steps, self.max_passes, tree, self._tools.program, MAX_KB)

    def _judge(
        self, problem: AstGrepProblem, result: JobResult, tree: str, action: Action | None
    ) -> Judgement | Future[Judgement]:
        got = _edited(result)
        if isinstance(got, Verdict):
            return Judgement(measured(got, problem, READ, action=action), result.reproducible)
        text, matches, digest = _with_line_ends(got[0], problem), *got[1:]
        if problem.answer == "action" and (action is None or action.steps):
            if matches == 0:
                failed = _failed("wrong_answer", "the action matches nothing", result.cpu_s)
                return Judgement(measured(failed, problem, TAKEN, action=action))
            if (problem.proved or not problem.tests) and problem.before == problem.after:
                failed = _failed("wrong_answer", f"nothing is left to change, which `{DONE}` says", result.cpu_s)
                return Judgement(measured(failed, problem, APPLIED, text, action))

        def with_measures(one: Judgement) -> Judgement:
            return replace(one, verdict=self._held(problem, measured(one.verdict, problem, APPLIED, text, action)))

        judged = self._judged(problem, text, digest, tree, result.cpu_s)
        return then(judged, with_measures) if isinstance(judged, Future) else with_measures(judged)

    def _held(self, problem: AstGrepProblem, verdict: Verdict) -> Verdict:
        """Fail a pass of the tests if functions or classes have changed that the wanted text leaves as they were."""
        asked = self.untouched == "wanted" or (self.untouched == "proved" and problem.proved)
        kept = verdict.measures.get("untouched", 1.0) == 1.0
        if kept or not asked or not problem.tests or verdict.outcome != "passed":
            return verdict
        log = "the tests hold, but functions or classes that the edit leaves as they are have changed or are gone"
        return replace(verdict, outcome="failed", bucket="wrong_answer", passed=0, log=log)

    def _judged(
        self, problem: AstGrepProblem, text: str, digest: str, tree: str, seconds: float
    ) -> Judgement | Future[Judgement]:
        """The verdict on an edited text: by the tests, as a text, or as a tree."""
        wanted = problem.after

        def compared(same: bool) -> Judgement:
            if same:
                return Judgement(Verdict("passed", passed=1, total=1, seconds=seconds))
            return Judgement(_failed("wrong_answer", first_difference(text, wanted), seconds))

        def by_tests(verdict: Verdict) -> Judgement:
            """A timeout is the tests', not the edit's; their verifier caches such verdicts itself."""
            whole = replace(verdict, seconds=verdict.seconds + seconds, cached=False)
            return Judgement(
                whole, verdict.outcome in ("passed", "rejected") or verdict.bucket not in (None, "timeout")
            )

        def by_tree(known: JobResult) -> Judgement:
            found = _edited(known)
            if isinstance(found, Verdict):
                log = f"the wanted text has no tree: {found.log}"
                return Judgement(Verdict("no_verdict", log=log), cacheable=False)
            if not found[2]:
                return compared(text == wanted)
            if not digest:
                log = f"the edited text does not parse as {problem.language}"
                return Judgement(_failed("wrong_answer", log, seconds))
            return compared(digest == found[2])

        if (problem.proved or not problem.tests) and text == wanted:
            return compared(True)
        if problem.tests:
            return then(self._by_tests(problem, text), by_tests)
        if tree:
            return then(self._wanted_tree(wanted, tree), by_tree)
        loose = self.compare == "text_loose"
        return compared(equal_but_blanks(text, wanted, problem.language) if loose else text == wanted)

    def _wanted_tree(self, after: str, language: str) -> Future[JobResult]:
        """The tree of the wanted text, from a process that runs no candidate's rule; computed once a text."""
        key = (language, after)
        with self._guard:
            known = self._digests.get(key)
            if known is not None and known.done():
                failed = known.exception() is not None or isinstance(_edited(known.result()), Verdict)
                known = None if failed else known
            if known is None:
                payload = pack(after, [], 1, language, self._tools.program, MAX_KB)
                known = self._digests[key] = self._pool.submit(Job(payload, self._limits))
            self._digests.move_to_end(key)
            while len(self._digests) > _DIGESTS:
                self._digests.popitem(last=False)
            return known

    def _by_tests(self, problem: AstGrepProblem, text: str) -> Future[Verdict]:
        with self._guard:
            if self._tests is None:  # With its own pool: only if tests decide.
                self._tests = PytestSuite(self._sandbox, self._cache_options)
        tests = PytestProblem(problem.tests, limits=problem.limits, reference=problem.after)
        return self._tests.submit(Request(tests, Candidate(text)))


def pack(
    text: str,
    steps: list[tuple[str, str, list[str], bool]],
    max_passes: int = 1,
    tree: str = "",
    program: str = "",
    max_kb: int = 512,
    engine: str = "auto",
) -> bytes:
    """The payload of one job.

    Args:
        text: the text to edit.
        steps: in order, each with its language, file ending, the JSON of each rule's acting parts, and whether
            comments suppress matches.
        tree: the language of the digest of the result's syntax tree; empty: no digest.
        program: path of the ast-grep program.
        max_kb: largest UTF-8 size of a result.
        engine: `auto`, or the engine to force, for tests that compare them.
    """
    named = {"max_passes": max_passes, "tree": tree, "program": program, "max_kb": max_kb, "engine": engine}
    return wire.encode({"text": text, "steps": steps, **named})


def _fault_of(problem: Any) -> str:
    """The reason why a problem cannot be judged; empty if it can."""
    if not isinstance(problem, AstGrepProblem):
        return f"ast_grep judges edits, not {type(problem).__name__}"
    try:
        language = language_of(problem.language)
        sizes = [len(text.encode()) for text in (problem.before, problem.after, problem.tests)]
    except UnicodeEncodeError:
        return "the problem's texts are not Unicode: a lone surrogate"
    except ActionFault as fault:
        return f"the problem's {fault}"
    if max(sizes) > MAX_KB << 10:
        return f"the problem has a text of {max(sizes)} bytes, allowed {MAX_KB << 10}"
    return f"tests judge Python, not {language}" if problem.tests and language != "python" else ""


def _edited(result: JobResult) -> tuple[str, int, str] | Verdict:
    """(text, matches, digest) as the candidate's process reports them, untrusted data; or the verdict without them."""
    seconds = result.cpu_s
    if result.end == "unavailable":
        return Verdict("no_verdict", log=f"no sandbox worker: {result.log.decode(errors='replace')[:300]}")
    if result.end != "exit":
        return _failed(BUCKET_OF_END[result.end], f"applying the rule was ended by its limit: {result.end}", seconds)
    try:
        records = [wire.decode(frame) for frame in frames(result.records)]
        record = records[0] if len(records) == 1 else None
    except ValueError:
        record = None
    match record:
        case ["text", str(text), int(matches), str(digest)]:
            return text, matches, digest
        case ["fault", "engine", str(message)]:
            return Verdict("no_verdict", log=message)
        case ["fault", str(kind), str(message)] if kind in _BUCKET_OF_FAULT:
            return _failed(_BUCKET_OF_FAULT[kind], message[:600], seconds)
    log = result.log[-200:].decode(errors="replace")
    bucket = "memory" if "memory allocation" in log or "MemoryError" in log else "runtime_error"
    return _failed(bucket, f"the engine broke under the rule (status {result.status}): {log}", seconds)


def _with_line_ends(text: str, problem: AstGrepProblem) -> str:
    """An edited text; a text that rules made has the line ends of the problem's texts."""
    return edited_line_ends(text, problem.before, problem.after) if problem.answer == "action" else text


def _failed(bucket: str, log: str, seconds: float = 0.0) -> Verdict:
    return Verdict("failed", bucket, total=1, seconds=seconds, log=log)
