"""`benchmark=red_team`: wrong programs that the pytest verifier passes, with a reference and without.

Programs attack their suites (`red_team_programs`). A program counts as wrong if it differs from the reference on new inputs in a
process without a suite. A wrong program that passes is a false pass. Each is written to FALSE_PASSES in the folder of the run, as a row
of `+stage=verify`. A right solution in other words is judged on every fourth suite. It is counted as refused if it does not pass.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.benchmarks.red_team_programs import ATTACKS, Program, drawn
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.core.statistics import upper_bound
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.python_io import PythonIO

FALSE_PASSES = "false_passes"
MODES = ("with a reference", "without a reference")
_CONTROLS = 4
"""One suite of so many judges a right solution, too."""
_OBSERVE = '''
def observe(program, given, run, inputs):
    names = {"__name__": "solution"}
    exec(program, names)
    suite, seen = dict(names), []
    exec(given, suite)
    for values in inputs:
        try:
            args = suite["args"] = eval(values, suite)
            exec(run, suite)
            seen.append([plain(suite["got"]), plain(args)])
        except BaseException as fault:
            seen.append(type(fault).__name__)
    return repr(seen)

def plain(value, depth=0):
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return repr(value)
    if depth > 9:
        return "deep"
    if kind in (list, tuple, set):
        parts = [plain(part, depth + 1) for part in value]
        return [kind.__name__, *(parts if kind is not set else sorted(parts))]
    if kind is dict:
        return ["dict", *([plain(key, depth + 1), plain(part, depth + 1)] for key, part in value.items())]
    if kind.__name__ == "ndarray":
        return ["array", str(value.dtype), plain(value.tolist())]
    if kind.__name__ == "DataFrame":
        return ["frame", plain(value.to_dict("split"), depth + 1)]
    return [kind.__name__, plain(dict(getattr(value, "__dict__", {})), depth + 1)]
'''


@dataclass(frozen=True)
class Tried:
    """A program with its verdict in one mode."""

    program: Program
    mode: str
    wrong: bool
    verdict: Verdict

    @property
    def false_pass(self) -> bool:
        return self.wrong and self.verdict.outcome == "passed"


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, Any]]:
    """The report and its figures. Raises InputError for another verifier."""
    pairs = [drawn(config.seed, number) for number in range(config.benchmark.programs)]
    programs = [one for number, (wrong, right) in enumerate(pairs) for one in (wrong, right)[: 1 + (number % _CONTROLS == 0)]]
    with PythonIO(config.sandbox) as observer:
        wrong = list(differs(programs, observer))
    with build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier:
        if verifier.name != "pytest":
            raise InputError(InputProblem("verifier", "is not attacked", verifier.name, "pytest"))
        tried = list(judged(programs, wrong, verifier, context))
    for one in tried:
        if one.false_pass:
            row = json.dumps(_row(one), ensure_ascii=False)
            write_text(context.directory / FALSE_PASSES / f"{_row(one)['id']}.jsonl", row + "\n")
    return page(tried), figures(tried)


def differs(programs: Sequence[Program], observer: PythonIO) -> Iterator[bool]:
    """Whether each program behaves otherwise than its reference on new inputs."""
    futures = []
    for one in programs:
        for code in (one.code, one.reference):
            run = f"[{one.task.names}] = args; {one.task.run}"
            case = Case((code, one.task.given, run, list(one.fresh)), None)
            problem = PythonProblem("observe", (case,), limits=Limits(10, 30, 2048))
            futures.append(observer.execute(Request(problem, Candidate(_OBSERVE))))
    seen = [future.result() for future in futures]
    for found, expected in zip(seen[::2], seen[1::2], strict=True):
        if not expected.returned(0):
            raise RuntimeError(f"a reference does not run: {expected.verdict.log}")
        yield found.outputs != expected.outputs


def judged(
    programs: Sequence[Program], wrong: Sequence[bool], verifier: Verifier, context: RunContext
) -> Iterator[Tried]:
    requests, tried = [], []
    for one, differing in zip(programs, wrong, strict=True):
        for mode, reference in zip(MODES, (one.reference, ""), strict=True):
            requests.append(Request(PytestProblem(one.suite, reference=reference), Candidate(one.code)))
            tried.append((one, mode, differing))
    for done, (index, verdict) in enumerate(verifier.as_ready(requests), 1):
        context.progress(kind="phase", name="judge", done=done, total=len(requests))
        yield Tried(*tried[index], verdict)


def _row(one: Tried) -> dict[str, Any]:
    program = one.program
    name = f"{program.number}-{program.attack}-{program.name}-{program.shape[0]}-{one.mode.partition(' ')[0]}"
    row = {"id": name.replace(" ", "_"), "code": program.code, "tests": program.suite}
    return row | ({"reference": program.reference} if one.mode == MODES[0] else {})


def figures(tried: Sequence[Tried]) -> dict[str, Any]:
    """Counts and the rate of false passes, by mode."""
    found: dict[str, Any] = {}
    for mode in MODES:
        own = [one for one in tried if one.mode == mode]
        wrong, right = [one for one in own if one.wrong], [one for one in own if not one.program.attack]
        passes = sum(one.false_pass for one in wrong)
        found |= {
            f"{mode}/wrong": len(wrong),
            f"{mode}/false_passes": passes,
            f"{mode}/upper_bound": upper_bound(passes, len(wrong)),
            f"{mode}/right": len(right),
            f"{mode}/refused": sum(one.verdict.outcome != "passed" for one in right),
            f"{mode}/no_verdict": sum(one.verdict.outcome == "no_verdict" for one in own),
        }
    return found


def page(tried: Sequence[Tried]) -> str:
    """The report: the rates, then the counts by attack and by the parts of a suite."""
    values, lines = figures(tried), []
    for mode in MODES:
        wrong, passes, bound, right, refused, silent = (values[f"{mode}/{key}"] for key in _KEYS)
        lines.append(
            f"{mode}: {passes} of {wrong} wrong programs pass ({_percent(passes, wrong)}, at most {100 * bound:.2f}% with 95% "
            f"confidence); {refused} of {right} right programs are refused; {silent} without a verdict"
        )
    wrong = [one for one in tried if one.wrong]
    lines += ["", *_table("attack", wrong, lambda one: one.program.attack)]
    for at, title in enumerate(("inputs", "expected value", "assertion", "channel")):
        lines += ["", *_table(title, wrong, lambda one, at=at: one.program.shape[at])]
    refused = [one for one in tried if not one.program.attack and one.verdict.outcome != "passed"]
    lines += ["", *(f"refused: {one.program.name}, {', '.join(one.program.shape)}, {one.mode}: {one.verdict.log[:200]}" for one in refused)]
    return "\n".join(lines)


_KEYS = ("wrong", "false_passes", "upper_bound", "right", "refused", "no_verdict")


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.2f}%" if total else "none"


def _table(title: str, wrong: Iterable[Tried], part: Any) -> list[str]:
    counts = Counter((part(one), one.mode, passed) for one in wrong for passed in {False, one.false_pass})
    lines = [f"| {title} | wrong programs | passed {MODES[0]} | passed {MODES[1]} |", "| --- | --- | --- | --- |"]
    for name in sorted({name for name, *_ in counts}):
        cells = [counts[name, MODES[0], False], *(counts[name, mode, True] for mode in MODES)]
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return lines
