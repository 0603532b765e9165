"""`benchmark=red_team`: wrong programs that the pytest verifier passes, with a reference and without.

Programs attack their suites (`red_team_programs`). A program is wrong if it differs from the reference on new inputs, in a sandboxed
process without a suite. A wrong program that passes is a false pass: a file in the folder FALSE_PASSES of the run, a row of
`+stage=verify`. On a fourth of the suites a right solution in other words is judged, too. It is refused if it does not pass.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.benchmarks.red_team_programs import ATTACKS, TASKS, Program, Shape, drawn
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
from rlvr_exp.verifiers.base import Executor, Request, Verdict, Verifier
from rlvr_exp.verifiers.python_io import PythonIO

FALSE_PASSES = "false_passes"
MODES = {"reference": "with a reference", "no_reference": "without a reference"}
_CONTROLS, _SHOWN = 4, 20
"""A right solution is judged on one of so many suites. The report has so many of those that are refused."""
OBSERVE = """
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
"""


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

    @property
    def refused(self) -> bool:
        return not self.program.attack and self.verdict.outcome != "passed"

    @property
    def row(self) -> dict[str, str]:
        """For `+stage=verify`."""
        one = self.program
        name = f"{one.number} {one.attack} {one.task} {one.shape.place} {self.mode}".replace(" ", "-")
        row = {"id": name, "code": one.code, "tests": one.suite}
        return row | ({"reference": one.reference} if self.mode == "reference" else {})


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, Any]]:
    """The report and its figures. Raises InputError for another verifier."""
    programs = list(composed(config.seed, config.benchmark.programs))
    with PythonIO(config.sandbox) as observer:
        wrong = differing(programs, observer)
    with build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier:
        if verifier.name != "pytest":
            raise InputError(InputProblem("verifier", "its suites are not attacked", verifier.name, "pytest"))

        def progress(done: int, total: int) -> None:
            context.progress(kind="phase", name="judge", done=done, total=total)

        tried = judged(programs, wrong, verifier, progress)
    for one in tried:
        if one.false_pass:
            text = json.dumps(one.row, ensure_ascii=False)
            write_text(context.directory / FALSE_PASSES / f"{one.row['id']}.jsonl", text + "\n")
    return page(tried), figures(tried)


def composed(seed: int, count: int) -> Iterator[Program]:
    """So many wrong programs, and right ones among them."""
    for number in range(count):
        wrong, right = drawn(seed, number)
        yield wrong
        if (number + number // len(ATTACKS)) % _CONTROLS == 0:  # on suites of every attack
            yield right


def differing(programs: Sequence[Program], executor: Executor) -> list[bool]:
    """Whether each program behaves otherwise than its reference on new inputs."""
    futures = []
    for one in programs:
        task = TASKS[one.task]
        call = f"[{task.names}] = args; {task.run}"
        for code in (one.code, one.reference):
            case = Case((code, task.given, call, list(one.fresh)), None)
            problem = PythonProblem("observe", (case,), limits=Limits(cpu_s=10, wall_s=60, memory_mb=2048))
            futures.append(executor.execute(Request(problem, Candidate(OBSERVE))))
    seen = [future.result() for future in futures]
    for expected in seen[1::2]:
        if not expected.returned(0):
            raise RuntimeError(f"a reference does not run: {expected.verdict.log}")
    return [found.outputs != expected.outputs for found, expected in zip(seen[::2], seen[1::2], strict=True)]


def judged(
    programs: Sequence[Program], wrong: Sequence[bool], verifier: Verifier, progress: Callable[[int, int], None]
) -> list[Tried]:
    """The programs with their verdicts, in each mode."""
    asked = [(one, mode, other) for one, other in zip(programs, wrong, strict=True) for mode in MODES]
    references = [one.reference if mode == "reference" else "" for one, mode, _ in asked]
    problems = [PytestProblem(one.suite, reference=text) for (one, *_), text in zip(asked, references, strict=True)]
    requests = [Request(problem, Candidate(one.code)) for (one, *_), problem in zip(asked, problems, strict=True)]
    verdicts: dict[int, Verdict] = {}
    for index, verdict in verifier.as_ready(requests):
        verdicts[index] = verdict
        progress(len(verdicts), len(requests))
    return [Tried(*one, verdicts[index]) for index, one in enumerate(asked)]


def figures(tried: Sequence[Tried]) -> dict[str, Any]:
    """Counts and the rate of false passes with its upper bound, by mode; false passes by attack."""
    found: dict[str, Any] = {}
    for mode in MODES:
        own = [one for one in tried if one.mode == mode]
        wrong, passes = sum(one.wrong for one in own), [one for one in own if one.false_pass]
        counts = {
            "wrong": wrong,
            "false_passes": len(passes),
            "rate": len(passes) / max(wrong, 1),
            "upper_bound": upper_bound(len(passes), wrong),
            "right": sum(not one.program.attack for one in own),
            "refused": sum(one.refused for one in own),
            "no_verdict": sum(one.verdict.outcome == "no_verdict" for one in own),
        }
        found |= {f"{mode}/{key}": value for key, value in counts.items()}
        for name in sorted({one.program.attack for one in passes}):
            found[f"{mode}/false_passes/{name}"] = sum(one.program.attack == name for one in passes)
    return found


def page(tried: Sequence[Tried]) -> str:
    """The report: rates by mode, then false passes by attack and by the parts of a suite, then refused right programs."""
    values, lines = (
        figures(tried),
        ["| | wrong programs | false passes (95% bound) | right programs | refused | no verdict |"],
    )
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for mode, title in MODES.items():
        of = {key.removeprefix(f"{mode}/"): value for key, value in values.items() if key.startswith(f"{mode}/")}
        passes = f"{of['false_passes']}: {100 * of['rate']:.2f}% (at most {100 * of['upper_bound']:.2f}%)"
        counts = (of["wrong"], passes, of["right"], of["refused"], of["no_verdict"])
        lines.append(f"| {title} | {' | '.join(map(str, counts))} |")
    lines += _table("attack", tried, lambda one: one.attack)
    for part in Shape._fields:
        lines += _table(part, tried, lambda one, part=part: getattr(one.shape, part).partition(",")[0])  # type: ignore[misc]
    refused = [one for one in tried if one.refused][:_SHOWN]
    lines += [
        "",
        *(f"refused: {one.row['id']}, {', '.join(one.program.shape)}: {one.verdict.log[:200]}" for one in refused),
    ]
    return "\n".join(lines).rstrip()


def _table(title: str, tried: Sequence[Tried], part: Callable[[Program], str]) -> list[str]:
    lines = ["", f"| {title} | wrong programs | {' | '.join(f'false passes {mode}' for mode in MODES.values())} |"]
    lines.append("| --- | --- | --- | --- |")
    wrong = [one for one in tried if one.wrong]
    for name in sorted({part(one.program) for one in wrong}):
        own = [one for one in wrong if part(one.program) == name]
        passes = [sum(one.false_pass for one in own if one.mode == mode) for mode in MODES]
        lines.append(f"| {name} | {len({one.program.number for one in own})} | {' | '.join(map(str, passes))} |")
    return lines
