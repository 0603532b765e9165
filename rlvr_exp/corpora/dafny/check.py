"""Checks Dafny data before a run: reads all of it, cuts every program into its methods, reassembles each, builds the
pairings of both roles, splits, and counts with reasons. Nothing is proved: usable_examples does that."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.load import Survey, survey
from rlvr_exp.tasks.dafny.pairs import Pairings, build_pairings_for_annotator, build_pairings_for_writer
from rlvr_exp.tasks.dafny.split import qualified, split
from rlvr_exp.tasks.dafny.stratify import alike, construct, split_examples
from rlvr_exp.tasks.dafny.syntax import CALLABLES, Unreadable
from rlvr_exp.tasks.dafny.tokens import ERROR, plain, tokens

_SHOWN = 20


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """The counts. Raises InputError for faults of the data, GuardStop where a reassembled program is another."""
    path = config.prepare.path
    found = survey(path)
    lost = [*changed(found), *other_text(found)]
    text = f"path: {path}\n{report(found, lost)}"
    if lost:
        raise GuardStop(text)
    return text, {"programs": len(found.programs), "examples": len(found.examples)}


def changed(found: Survey) -> list[str]:
    """Programs that differ from one of their methods reassembled from its parts."""
    lost = []
    for program in found.programs:
        try:
            methods = split(program.text).methods
        except Unreadable:
            continue
        whole = (method.before + method.header + method.spec + method.body + method.after for method in methods)
        if any(text != program.text for text in whole):
            lost.append(program.id)
    return lost


def other_text(found: Survey) -> list[str]:
    """Examples whose texts are not their program's."""
    texts = {program.text for program in found.programs}
    return [example.id for example in found.examples if texts and example.gold not in texts]


def report(found: Survey, lost: Sequence[str]) -> str:
    examples = found.examples
    lexed = [program for program in found.programs if not any(one[0] == ERROR for one in tokens(plain(program.text)))]
    reasons = Counter(reason.partition(":")[0] for reason in found.left_out.values())
    lines = [
        f"set: {found.set}",
        f"programs: {len(found.programs)}, that lex: {len(lexed)}, without an example: {_counted(reasons)}",
        f"put together otherwise than given: {len(lost)}" + "".join(f"\n    {name}" for name in lost[:_SHOWN]),
        f"declared with a body: {_counted(_kinds(found))}",
        f"examples: {len(examples)}, by first construct: {_counted(Counter(map(construct, examples)))}",
    ]
    lines += [_summary(build(examples)) for build in (build_pairings_for_writer, build_pairings_for_annotator)]
    if examples:
        lines += _splits(examples)
    return "\n".join(lines)


def _kinds(found: Survey) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for program in found.programs:
        try:
            declared = qualified(split(program.text).declarations)
        except Unreadable:
            continue
        kinds.update(one.kind for _, one in declared if one.kind in CALLABLES and one.body is not None)
    return kinds


def _summary(pairings: Pairings) -> str:
    same = sum(pairing.given == pairing.wanted for pairing in pairings)
    left = "".join(f"\n    {count} {reason}" for reason, count in pairings.reasons().items())
    nothing = f" ({same} with nothing to add)" if pairings.role == "annotator" else ""
    return f"{pairings.role} pairs: {len(pairings)}{nothing}, left out: {len(pairings.left_out)}{left}"


def _splits(examples: Sequence[DafnyExample]) -> Iterable[str]:
    groups = Counter(alike(examples).values())
    parts = split_examples(examples)
    yield f"groups that stay together: {len(groups)}, the largest of {max(groups.values())}"
    yield "splits: " + " ".join(f"{name}={len(members)}" for name, members in parts.items())


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "none"
