"""The candidates of a validation: golds, negatives of the data, stub programs, mutants, fixed answers."""

from collections.abc import Iterator
from dataclasses import dataclass

from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.formats.rows import as_program, format_of
from rlvr_exp.tasks.mutants import changed_line, chosen, stub_programs
from rlvr_exp.tasks.python_syntax import syntax_fault
from rlvr_exp.verifiers.universal import fixed_answers

KINDS = ("gold", "wrong", "hollow", "mutant", "universal")


@dataclass(frozen=True)
class ValidationCandidate:
    """A candidate of a task. Golds should pass, all others should not."""

    task: Task
    kind: str
    variant: str
    """Which candidate of its kind: a mutation's name, a number, or nothing."""
    candidate: Candidate
    line: int = 0
    """Where a mutant differs from the gold."""
    change: str = ""
    """The changed line of a mutant, before and after."""


def validation_candidates(
    domain: Domain, task: Task, mutants: int, universal: str = "none"
) -> Iterator[ValidationCandidate]:
    """All candidates of a task. Mutants and stub programs are derived from Python golds only, of an edit with tests from its text
    after, as edited texts.

    `universal`: which fixed answers are included, an element of `verifiers.universal.KINDS`.
    """
    yield from _from_the_set(domain, task, mutants)
    for name, text in fixed_answers(task.problem, universal):
        yield ValidationCandidate(task, "universal", name, Candidate(text))


def _from_the_set(domain: Domain, task: Task, mutants: int) -> Iterator[ValidationCandidate]:
    for number, text in enumerate(task.negatives):
        yield ValidationCandidate(task, "wrong", str(number), domain.parse(text, task))
    program = as_program(task)
    if program is not None:
        yield from _altered(*program, mutants)
    if task.gold is None:
        return
    gold = domain.parse(task.gold, task)
    yield ValidationCandidate(task, "gold", "", gold)
    form = format_of(task.problem)
    if form is not None and form.is_python:
        yield from _altered(task, gold, mutants)
    elif program is None:
        yield ValidationCandidate(task, "hollow", "empty", Candidate(""))


def _altered(task: Task, gold: Candidate, mutants: int) -> Iterator[ValidationCandidate]:
    """Stub programs and mutants of a right program."""
    if gold.text is None or syntax_fault(gold.text) is not None:
        return
    for stub in stub_programs(gold.text):
        yield ValidationCandidate(task, "hollow", stub.kind, Candidate(stub.code))
    for mutant in chosen(gold.text, mutants, task.id):
        change = changed_line(gold.text, mutant)
        yield ValidationCandidate(task, "mutant", mutant.kind, Candidate(mutant.code), mutant.line, change)
