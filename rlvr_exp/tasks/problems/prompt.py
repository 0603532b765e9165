"""The wording of problems: what a solver is shown at each stage of reasoning, and a tester of its outputs.

`bare` is for small models trained here: the problem, the shown calls, earlier outputs under their names, and the name of the stage
that is asked for. `instruct` says the same in words.
"""

from collections.abc import Mapping

from rlvr_exp.config.problems import ReasoningStage
from rlvr_exp.tasks.completion import fenced
from rlvr_exp.tasks.problems.rows import ProblemRow, call_text
from rlvr_exp.tasks.problems.tester import TESTS

TESTS_IN_WORDS = (
    "Write tests of the function, a line each: a call with literal arguments and the value that it has to return, such as `f(2) == 4`."
    " Good tests fail where a program is wrong."
)


def write(row: ProblemRow, stage: str, options: ReasoningStage, chain: Mapping[str, str], style: str) -> str:
    """The prompt of a solver's stage. `chain`: the earlier outputs that it is shown, by stage."""
    if style == "bare":
        return _bare(row, stage, chain)
    answer = "Answer with one Python code block." if options.form == "code" else "Answer with nothing else."
    purpose = f"Next is the {stage}: {options.purpose.strip()}. " if options.purpose else ""
    return f"{_in_words(row, chain)}{purpose}{options.solver.strip()} {answer}\n"


def write_tester(
    row: ProblemRow, stage: str, stages: Mapping[str, ReasoningStage], about: Mapping[str, str], style: str
) -> str:
    """The prompt for a critique of an output, or for tests. `about`: the output, by its stage."""
    if style == "bare":
        return _bare(row, stage, about)
    asked = TESTS_IN_WORDS if stage == TESTS else " ".join(stages[name].tester.strip() for name in about)
    return f"{_in_words(row, about)}{asked} Answer with nothing else.\n"


def _bare(row: ProblemRow, stage: str, chain: Mapping[str, str]) -> str:
    earlier = [line for name, text in chain.items() for line in (f"[{name}]", text.strip("\n"))]
    return "\n".join([row.text.strip("\n"), *_calls(row), *earlier, f"[{stage}]", ""])


def _in_words(row: ProblemRow, chain: Mapping[str, str]) -> str:
    calls = "\n".join(_calls(row))
    shown = f"Examples:\n\n{fenced(calls, 'python')}\n\n" if calls else ""
    earlier = "".join(f"## {name}\n\n{text.strip(chr(10))}\n\n" for name, text in chain.items())
    return f"{row.text.strip(chr(10))}\n\nThe function is `{row.entry_point}`.\n\n{shown}{earlier}"


def _calls(row: ProblemRow) -> list[str]:
    return [call_text(row.entry_point, case) for case in row.shown]
