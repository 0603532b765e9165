"""Whether a program that the tool calls proved is accepted: each promise is in its log, and false is not proved as
well.

Dafny 2.3 writes a line for each body that must keep a promise. Where a line is missing, `assert false` at the end of
that body must be reported as an error. With `vacuity` every body is probed this way: where false is proved at each exit
of a given body, or of a new body that requires nothing, the proof means nothing. A given contract that implies false is
no fault of the candidate. Decides nothing about declarations: the guards do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rlvr_exp.verifiers.dafny import vacuity
from rlvr_exp.verifiers.dafny.declarations import Facts, ProgramDeclarations
from rlvr_exp.verifiers.dafny.guards import Violation
from rlvr_exp.verifiers.dafny.logs import Report
from rlvr_exp.verifiers.dafny.run import Run


@dataclass(frozen=True)
class Proof:
    """A candidate that the tool calls proved. `run` runs further programs within the candidate's limits, `read` parses
    their output; `named`: the tool's log names each body as `declarations.labelled` does."""

    given: ProgramDeclarations
    text: str
    facts: Facts
    report: Report
    named: bool
    run: Callable[[str, Sequence[str]], Run]
    read: Callable[[str, int], Report]

    def objection(
        self, careful: Sequence[str], probing: Sequence[str], searching: Sequence[str], every: bool
    ) -> Violation | Run | None:
        """Why it is not accepted, or a Run that reached a limit, which leaves a doubt.

        Args:
            careful: options of the run that proved it.
            probing: further options of a run that only searches for false, with a small count of resources.
            searching: the same with the count of the proof, for the bodies whose probes fell to the small one.
            every: probe all bodies, not only those missing in the log.
        """
        silent = vacuity.silent(self.report, self.facts.promising) if self.named else frozenset[str]()
        if not self.report.procedures and self.facts.promising and not self.named:
            return Violation("unproved", "Dafny proved nothing where there is something to prove")
        if not (silent or every):
            return None
        text, labels = vacuity.probed(self.text, lambda label: every or label in silent)
        run = self.run(text, [*careful, *probing])
        if run.end != "done":
            return run
        report = self.read(run.output, run.code)
        unheard = self._unheard(report, labels, silent)
        if unheard:
            return Violation("unproved", f"Dafny's log does not report the body of {unheard} as verified")
        found = self._vacuous(vacuity.proved(report, labels), probing)
        late = vacuity.undecided(report, labels)
        if late and not found:
            run = self.run(vacuity.probed(self.text, late.__contains__)[0], [*careful, *searching])
            found = self._vacuous(vacuity.proved(self.read(run.output, run.code), late), probing)
        if found:
            return Violation("vacuous", f"`assert false` is proved at the end of {found}")
        return None if run.end == "done" else run

    def _unheard(self, report: Report, labels: Mapping[str, int], silent: frozenset[str]) -> str:
        """A body whose probe is in no line of the log, or is no error though the log had no line before."""
        if not self.named:
            return ""
        ends = vacuity.ends(report)
        missing = {label for label, count in labels.items() if len(ends.get(label, ())) < count}
        return min(missing | (silent - vacuity.refuted(report, silent)), default="")

    def _vacuous(self, proved: Sequence[str], probing: Sequence[str]) -> str:
        given = [label for label in proved if label in self.given.labels]
        new = [label for label in proved if label not in self.given.labels and label in self.facts.unconditional]
        if given and self.given.text:
            run = self.run(vacuity.contract_probe(self.given.text, given), probing)
            if run.end == "done":
                excused = vacuity.proved(self.read(run.output, run.code), given)
                given = [label for label in given if label not in excused]
        return next(iter(given + new), "")
