"""Which split reinforcement learning uses."""

import json
from pathlib import Path

import pytest

from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.launch.preflight import rl_split

BODY = "{\n  r := a + a;\n}"
ROW = {"header": "method Twice(a: int) returns (r: int)\n", "spec": "  ensures r == 2 * a\n", "body": BODY}


@pytest.mark.parametrize(("files", "asked"), [(("train", "practice"), "practice"), (("train",), "train")])
def test_those_of_practice_where_the_data_has_some(tmp_path: Path, files: tuple[str, ...], asked: str) -> None:
    for name in files:
        row = {"id": name, "annotated_body": BODY, **ROW}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    domain = DafnyDomain(str(tmp_path), dev_fraction=0, test_fraction=0)
    assert list(domain.splits()) == list(files) and rl_split(domain) == asked


def test_a_domain_without_such_a_split_asks_what_it_imitates() -> None:
    assert rl_split(Arc(limit=2)) == "train"
