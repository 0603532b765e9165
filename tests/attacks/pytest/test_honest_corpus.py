"""Suites of kinds in use, each with one or two right solutions: bare pytest and the verifier pass them.

`honest/*.yaml`: a file for each group, a list of rows for each kind. A row has a name, the solution `code`, `tests`,
possibly another right solution (`other`) that differs from the first in its internals, and further files. The default
suite runs a tenth of the rows; the others are slow.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from bare_pytest import Bare
from suite_arena import make
from thinning import thinned

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.verifiers.base import Request

Row = dict[str, Any]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
KINDS: dict[str, list[Row]] = {
    f"{path.stem}/{kind}": rows
    for path in sorted(Path(__file__).with_name("honest").glob("*.yaml"))
    for kind, rows in yaml.load(path.read_bytes(), LOADER).items()
}
ROWS = {f"{kind}/{row['name']}": row for kind, rows in KINDS.items() for row in rows}
SAMPLE = set(thinned(ROWS))
CASES = [pytest.param(row, id=name, marks=[] if name in SAMPLE else [pytest.mark.slow]) for name, row in ROWS.items()]
REFUSED = {
    "cancellation and task groups": "a task of the solution takes more turns of the event loop than one of the suite",
    "memory of lazy results": "tracemalloc measures the process of the suite",
    "mixin added to a class of the suite": "the class refers to itself",
    "directed graph with views": "without a reference, nothing shows that the class is a container",
}
"""Rows that the verifier refuses with or without a reference, and why."""
each_row = pytest.mark.parametrize("row", CASES)


@pytest.fixture(scope="module")
def bare():
    bare = Bare()
    yield bare
    bare.close()


@pytest.fixture(scope="module")
def verifier():
    with make(workers=2, memory_mb=2048, cpu_s=10.0, wall_s=60.0) as verifier:
        yield verifier


def solutions(row: Row) -> list[str]:
    return [row[key] for key in ("code", "other") if key in row]


def test_corpus():
    assert len(ROWS) == sum(map(len, KINDS.values())) >= 400
    assert {key for row in ROWS.values() for key in row} == {"name", "code", "other", "tests", "files"}
    assert [kind for kind, rows in KINDS.items() if not any("other" in row for row in rows)] == []
    assert Counter(name for row in ROWS.values() for name in solutions(row)).most_common(1)[0][1] == 1


@each_row
def test_bare_pytest_passes(bare, row):
    files = row.get("files", {})
    assert [bare.outcome(code, row["tests"], files) for code in solutions(row)] == [""] * len(solutions(row))
    assert bare.outcome("", row["tests"], files), "the suite tests nothing"


@each_row
def test_verifier_passes(verifier, row):
    def request(code: str, reference: str = "") -> Request:
        return Request(
            PytestProblem(row["tests"], tuple(row.get("files", {}).items()), reference=reference), Candidate(code)
        )

    code, *others = solutions(row)
    requests = [request(code), *map(request, others)]
    requests += [request(f"{code}\n# another text\n", code), *(request(other, code) for other in others)]
    verdicts = verifier.verify(requests)
    refused = {verdict.outcome for verdict in verdicts} != {"passed"}
    assert refused == (row["name"] in REFUSED), [verdict for verdict in verdicts if verdict.outcome != "passed"]
