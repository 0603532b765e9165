"""Excess code of CanItEdit's own solutions, by the sandbox and by the published procedure, in one table.

    python tests/evaluation/excess_code_golds.py DIR [COVERAGE]

DIR is the set, COVERAGE a folder with another version of the package coverage (`pip install --target COVERAGE coverage==7.3.2`,
the version that the set's authors pin). The published procedure is `coverage run` and `coverage report -m` on the program with its
tests, in two processes outside any sandbox: for a set that one trusts.
Its first row is that of the program, where coverage takes installed packages for what they are.
"""

import difflib
import os
import subprocess
import sys
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.evaluation.excess_code import counts
from rlvr_exp.tasks.base import EditWithTests
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.line_coverage import LineCoverageRunner
from rlvr_exp.verifiers.suite.verifier import PytestSuite

SETTINGS = r"""[report]
exclude_lines =
    [#]\s*(pragma|PRAGMA)[:\s]?\s*(no|NO)\s*(cover|COVER)
    @(abc\.)?abstractmethod
"""
"""The authors' settings. The first pattern is the default of coverage 7.3; later versions leave out more."""
UNUSED = "\n\ndef unused(number):\n    half = number / 2\n\n    # a gap inside the range\n    return half\n"
"""Every gold is covered to the last line, so each is measured with a function that no test calls, too."""


def published(edit: EditWithTests, package: str = "") -> float | None:
    """Excess code as CanItEdit's runner and its `compute_excess_score` have it; None where the program fails."""
    environment = dict(os.environ, **({"PYTHONPATH": package} if package else {}))
    with TemporaryDirectory() as folder:
        Path(folder, ".coveragerc").write_text(SETTINGS)
        Path(folder, "program.py").write_text(edit.script)
        for words in (["run", "program.py"], ["report", "-m", "--include=program.py"]):
            command = [sys.executable, "-m", "coverage", *words]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
            if done.returncode:
                return None
    lines = done.stdout.splitlines()
    row = next(after for line, after in pairwise(lines) if line.startswith("---------"))
    columns = [part.strip("%") for part in row.split()]
    missing = _expanded(" ".join(columns[4:])) if int(columns[3]) < 100 else []
    compared = difflib.Differ().compare(edit.before.splitlines(), (edit.after + "\n").splitlines())
    return len(missing) / len(list(compared))


def _expanded(missing: str) -> list[int]:
    found = []
    for part in missing.split(", "):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def main(folder: str, package: str = "") -> None:
    domain, sandbox, seen = Code(path=folder, set="canitedit"), Sandbox(workers=1), Counter()
    tasks = domain.splits()["test"]
    with PytestSuite(sandbox) as verifier:
        golds = [domain.parse(domain.gold_completion(task), task) for task in tasks]
        verdicts = verifier.verify([Request(task.problem, gold) for task, gold in zip(tasks, golds, strict=True)])
    with closing(LineCoverageRunner(sandbox)) as runner:
        for task, gold, verdict in zip(tasks, golds, verdicts, strict=True):
            for kind, program in (("gold", gold.text), ("with unused code", gold.text + UNUSED)):
                edit = domain.edit_with_tests(task, program)
                found = counts(edit, runner.measure(edit.script).result())
                ours, theirs = found and found["uncovered"] / found["diff"], published(edit, package)
                seen.update([f"{kind}: {'equal' if ours == theirs else 'other'}"])
                seen.update([f"{kind}: {'no figure' if ours is None else 'not 0' if ours else '0'}"])
                print(task.id, kind, verdict.reason, "ours", ours, "published", theirs, found, flush=True)
    print(dict(sorted(seen.items())), dict(Counter(verdict.outcome for verdict in verdicts)))


if __name__ == "__main__":
    main(*sys.argv[1:])
