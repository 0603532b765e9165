"""+stage=infer with a solver and a tester, or a solver alone, through the command; the models have random weights."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from program import ENVIRONMENT, PROGRAM
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

TINY = Path(__file__).parents[3] / "rlvr_exp" / "assets" / "models" / "tiny_solver"
ROW = {
    "text": "Write size(x). It returns x without its sign.",
    "entry_point": "size",
    "solution": "def size(x):\n    return abs(x)",
}
ROWS = [{**ROW, "id": name, "split": "test", "tests": [{"args": [-3], "expected": 3}]} for name in ("one", "two")]
WORDS = ["+stage=infer", "data=problems", "data.path=rows.jsonl", "sandbox.workers=1"]
BOTH = ["environment=adversarial", "model.path=step", "roles.tester.model.max_completion_tokens=16"]
SAMPLED = ["infer.decoding=sample", "infer.samples=2", "environment.tests=2"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint: a tester of random weights, and the embedded solver."""
    place = tmp_path_factory.mktemp("both")
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(TINY)).save_pretrained(place / "step" / "tester")
    AutoTokenizer.from_pretrained(TINY).save_pretrained(place / "step" / "tester")
    shutil.copytree(TINY, place / "step" / "solver")  # A link would let a run write into the package.
    (place / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return place


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *WORDS, *words]
    return subprocess.run(command, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_the_tester_chooses_among_the_solvers_chains_and_the_report_shows_both(place: Path) -> None:
    done = program(place, *BOTH, *SAMPLED, "infer.output=out.jsonl", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = rows_of(place / "out.jsonl")
    assert {row["id"] for row in rows} == {"one", "two"} and all(len(row["samples"]) == 2 for row in rows)
    for row in rows:
        assert next(iter(row["stages"])) == "reasoning" and set(row["critiques"]) <= set(row["stages"])
        assert row["outcome"] == row["samples"][row["sample"]]["outcome"] and row["drawn"]["tester"] > 0
    found = json.loads((place / "run" / "summary.json").read_text())
    assert set(found["after"]) == {"chosen_at_2", "pass_at_1", "pass_at_2"}
    assert found["metrics"]["difference/chosen_at_2"]["n"] == 2
    page = (place / "run" / "report.html").read_text()
    assert "<h2>Answers</h2>" in page and "<th>solver</th><th>tester</th>" in page and "a random sample" in page
    words = [*BOTH, *SAMPLED, "infer.output=out.jsonl", "environment.critiques=false", "run.dir=other"]
    other = program(place, *words)
    assert other.returncode == 2 and "was written with another environment" in other.stdout + other.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "roles"), [(["environment=reasoning"], {"policy"}), ([*BOTH, "infer.verify=false"], {"solver", "tester"})]
)
def test_a_chain_alone(place: Path, words: list[str], roles: set[str]) -> None:
    run = f"run{len(roles)}"
    done = program(place, *words, "infer.tasks=1", f"run.dir={run}")
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = rows_of(place / run / "answers.jsonl")
    assert set(row["drawn"]) == roles and row["stages"] and row["written"] == []
    rates = set(json.loads((place / run / "summary.json").read_text())["after"])
    assert rates == ({"pass_at_1"} if row["outcome"] else set()) and (row["outcome"] is None) == (len(roles) == 2)
