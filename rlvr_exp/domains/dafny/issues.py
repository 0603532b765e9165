"""The soundness issues of Dafny: programs that prove false or did, with the options of the version in use that accept them.

`issues.yaml` has a row for each issue that is open, or that was reported against Dafny 4. A form of an issue is the body of a
method that promises false, and declarations. `proves` lists the options under which Dafny VERSION accepts it: D is the default, R
`--type-system-refresh`, RM also `--manual-lemma-induction`, T `--manual-triggers`. `stop` names what refuses a form that the guards
of candidates let through and that D and R accept: `induction`, `variance` or `results` (`self_calls.py`), which change the text for
Dafny.

    python -c "from rlvr_exp.domains.dafny import issues; print(issues.table())"

prints the table of rlvr_exp/docs/dafny_issues.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from rlvr_exp.domains.dafny import guards
from rlvr_exp.domains.dafny.guards import read_declarations
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.syntax import Unreadable
from rlvr_exp.domains.dafny.tokens import plain, printed

VERSION = "4.11.0"
"""The version of Dafny whose results the file records."""
OPTIONS = ("D", "R", "RM", "T")
GOAL = "method Goal()\n  ensures false\n"
"""The given program of every form."""


@dataclass(frozen=True)
class Form:
    """A program that proves false if Dafny accepts it."""

    name: str
    body: str
    declarations: str
    proves: frozenset[str]
    stop: str

    @property
    def program(self) -> str:
        return f"{GOAL}{{\n{self.body.rstrip()}\n}}\n{self.declarations}"

    @property
    def is_accepted(self) -> bool:
        """Whether both resolvers accept it as it is."""
        return {"D", "R"} <= self.proves


@dataclass(frozen=True)
class Issue:
    number: str
    title: str
    forms: tuple[Form, ...]

    @property
    def proves(self) -> list[str]:
        return [one for one in OPTIONS if any(one in form.proves for form in self.forms)]


@cache
def issues() -> tuple[Issue, ...]:
    rows = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return tuple(Issue(row["issue"], row["title"], tuple(map(_form, row["forms"]))) for row in rows)


def _form(row: Mapping[str, str]) -> Form:
    proves = frozenset(row.get("proves", "").split())
    return Form(row["name"], row.get("body", "U();"), row.get("declarations", ""), proves, row.get("stop", ""))


def refused(problem: DafnyProblem, text: str) -> str:
    """The rule by which the guards alone refuse it; empty if none does."""
    given, shown = plain(problem.program), plain(text)
    early = guards.before_parsing(given, shown)
    if early is not None:
        return early.rule
    try:
        violation, _ = guards.check(
            read_declarations(printed(given)), printed(shown), problem.protect or "specification"
        )
    except Unreadable:
        return "unreadable"
    return violation.rule if violation is not None else ""


def stopped_by(form: Form) -> str:
    """The guard, or the step of the verifier, that refuses a form; empty if nothing but Dafny does."""
    if rule := refused(DafnyProblem(GOAL), form.program):
        return f"`{rule}`"
    if form.stop:
        return form.stop
    return "the other resolver" if form.proves and not form.is_accepted else ""


def table() -> str:
    """The issues as a table in Markdown: those that prove false first."""
    lines = [f"| issue | cause | proves false in {VERSION} with | refused by |", "| --- | --- | --- | --- |"]
    for one in sorted(issues(), key=lambda one: not one.proves):
        stops = [stopped_by(form) for form in one.forms if form.proves or not one.proves]
        cells = (
            one.number,
            one.title.rstrip("."),
            ", ".join(one.proves),
            ", ".join(dict.fromkeys(filter(None, stops))),
        )
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines)
