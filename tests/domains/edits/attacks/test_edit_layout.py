"""`compare=syntax` tells layout from content: by pairs of texts in every language, and against the readers of Python and YAML."""

import ast
import random
from pathlib import Path

import pytest
import yaml
from edit_arena import PATIENCE_S

from rlvr_exp.domains.edits.layout import digest
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request

TABLE = yaml.safe_load(Path(__file__).with_name("layout.yaml").read_text())
ROWS = [
    (kind, *(row if len(row) == 3 else (group, *row)))
    for kind, groups in TABLE.items()
    for group, rows in groups.items()
    for row in rows
]


@pytest.fixture(scope="module")
def verdicts(by_tree):
    """Of each row: on the wanted text itself, on the other text, and the other way round; all at once."""

    def judged(language: str, wanted: str, got: str):
        problem = AstGrepProblem(language, "start", wanted, answer="text")
        return by_tree.submit(Request(problem, Candidate(got)))

    waiting = [
        [judged(language, *pair) for pair in ((one, one), (one, other), (other, one))]
        for _, language, one, other in ROWS
    ]
    return [[verdict.result(timeout=PATIENCE_S).outcome for verdict in row] for row in waiting]


@pytest.mark.parametrize("at", [pytest.param(at, id=f"{row[0]}-{row[1]}-{at}") for at, row in enumerate(ROWS)])
def test_layout_passes_and_all_else_fails(verdicts, at: int) -> None:
    same, got, turned = verdicts[at]
    assert digest(ROWS[at][2], ROWS[at][1]), "the wanted text has a tree"
    assert same == "passed"
    assert (got, turned) == (("passed", "passed") if ROWS[at][0] == "honest" else ("failed", "failed"))


def test_every_class_has_eight_rows() -> None:
    assert all(len(rows) >= 8 for groups in TABLE.values() for rows in groups.values())


PYTHON = [
    "def f(a, b=1, *c):\n    if a > 1:\n        return b\n    x = a if b else -c\n    return {1: [x for x in 'a b']}\n",
    'class A(B):\n    """a\n    b"""\n    @c.d\n    def f(self): return self.x\n    x: int = 1; y = 2\n',
    "try:\n    a()\nexcept (B, C) as e:\n    b()\nwith a as b, c:\n    pass\nassert a, b\nx = f'{a} b' 'c'\n",
]
YAML = [
    "a: |+\n  b\n\nc: 1\n",
    "a: |\n  b\n   c\n\nd: >-\n  e\n  f\n",
    "- a\n- b: c\n  d: [1, {e: f}]\n",
    "a:\n  - b: |+\n      c\n\n    d: &x 1\n  - *x\n",
    "a: b c\n  d\ne: 'f g'\n",
]
READERS = {
    "python": (
        lambda text: ast.dump(ast.parse(text)),
        PYTHON,
        ["\n", " ", "\n  ", " \\\n", "\\\n  ", "\t", "\f", "\xa0"],
    ),
    "yaml": (lambda text: list(yaml.load_all(text, yaml.BaseLoader)), YAML, ["\n", " ", "\n  ", "\t", "\n\n"]),
}


@pytest.mark.parametrize("language", READERS)
def test_texts_of_one_digest_read_alike(language: str) -> None:
    """A blank more or less at random places."""
    read, texts, blanks = READERS[language]

    def meaning(text: str):
        try:
            return read(text)
        except (SyntaxError, ValueError, yaml.YAMLError):
            return None

    draw, alike = random.Random(0), 0
    for _ in range(600):
        text = other = draw.choice(texts)
        for _ in range(draw.randint(1, 2)):
            place = draw.randrange(len(other) + 1)
            dropped = draw.random() < 0.4 and other[place : place + 1] in (" ", "\n")
            other = other[:place] + ("" if dropped else draw.choice(blanks)) + other[place + dropped :]
        if digest(text, language) == digest(other, language):
            assert meaning(text) == meaning(other), other
            alike += 1
    assert alike > 60
