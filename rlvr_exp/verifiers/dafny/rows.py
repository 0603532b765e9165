"""DafnyBench, and CloverBench's wrong variants, as rows for `+stage=verify verifier=dafny`.

    python -m rlvr_exp.verifiers.dafny.rows DIR ground_truth OUT.jsonl      each ground truth against itself
    python -m rlvr_exp.verifiers.dafny.rows DIR hints_removed OUT.jsonl     each program without its hints, likewise
    python -m rlvr_exp.verifiers.dafny.rows DIR pairs OUT.jsonl             ground truth as the answer to hints_removed
    python -m rlvr_exp.verifiers.dafny.rows DIR wrong OUT.jsonl             CloverBench: wrong variants as answers

DIR is the data set's folder, which holds DafnyBench/dataset or CloverBench. Only pairs leave out what has no program
without hints. Rows of `wrong` also say `weakened`: whether the variant's specification is another than the given one's.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from rlvr_exp.core.errors import InputError, Problem
from rlvr_exp.tasks.dafny.clover import variants

VARIANTS = ("ground_truth", "hints_removed", "pairs", "wrong")


def rows(folder: Path, variant: str) -> Iterator[dict[str, str | bool]]:
    """Rows {"id", "program", "candidate"}, in the order of their names.

    Raises:
        InputError: an unknown variant, or no data set there.
    """
    if variant not in VARIANTS:
        raise InputError(Problem("variant", "unknown", got=variant, allowed=", ".join(VARIANTS)))
    if variant == "wrong":
        yield from _wrong(folder)
        return
    dataset = folder / "DafnyBench" / "dataset"
    name = "hints_removed" if variant == "hints_removed" else "ground_truth"
    found = sorted((dataset / name).glob("*.dfy"))
    if not found:
        raise InputError(Problem(str(dataset / name), "no .dfy files", remedy="give the folder of DafnyBench"))
    for path in found:
        given = dataset / "hints_removed" / f"{path.stem}_no_hints.dfy" if variant == "pairs" else path
        if given.exists():
            yield {"id": path.stem, "program": _text(given), "candidate": _text(path)}


def _wrong(folder: Path) -> Iterator[dict[str, str | bool]]:
    for one in variants(folder):
        name = f"{one.kind}/{one.name}"
        yield {"id": name, "program": one.given, "candidate": one.text, "weakened": one.weakened}


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def main(words: list[str]) -> int:
    """The command line. Exit codes as everywhere: 0, 2."""
    if len(words) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows(Path(words[0]), words[1])]
    except InputError as fault:
        print(fault, file=sys.stderr)
        return fault.exit_code
    Path(words[2]).write_text("".join(lines), encoding="utf-8", newline="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
