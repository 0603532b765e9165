"""Every shipped verifier verifies its own sample rows through the command line, each as the row expects; so does
`quick`."""

import json
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM
from thinning import thinned

from rlvr_exp.config.tree import PACKAGE, conf_directory

VERIFIERS = sorted(path.stem for path in (conf_directory() / "verifier").glob("*.yaml"))


def command(cwd: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([*PROGRAM, *words], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=180)


def samples(verifier: str) -> list[dict]:
    of = "python_io" if verifier == "python_tests" else verifier  # Its rows are that one's.
    return [json.loads(line) for line in (PACKAGE / "assets" / "rows" / f"{of}.jsonl").read_text().splitlines()]


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("verifier", thinned(VERIFIERS))
def test_samples_are_judged_as_they_say(verifier, tmp_path):
    words = ["+stage=verify", "+experiment=quick", f"verifier={verifier}", f"cache.path={tmp_path}/cache"]
    done = command(tmp_path, *words, "run.dir=cold")
    if done.returncode == 2:  # Its tool is not on this machine: told, with what to do.
        assert "remedy" in done.stdout + done.stderr and not (tmp_path / "cold" / "verdicts.jsonl").exists()
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    cold = rows(tmp_path / "cold" / "verdicts.jsonl")
    for sample, row in zip(samples(verifier), cold, strict=True):
        said = " ".join(filter(None, (row["outcome"], row["bucket"], row["rule"])))
        assert row["id"] == sample["id"] and said.startswith(sample["expect"]), row
    assert command(tmp_path, *words, "run.dir=warm").returncode == 0
    warm = rows(tmp_path / "warm" / "verdicts.jsonl")
    metrics = json.loads((tmp_path / "warm" / "summary.json").read_text())["metrics"]
    assert metrics["system/verifier_cache_hits_disk"] >= 1
    for first, again in zip(cold, warm, strict=True):
        if first["bucket"] != "timeout":  # A clock's verdict may be one that is not remembered.
            assert first["log"] == again["log"] and (again == first | {"cached": True} or again == first)


def test_an_isolation_that_is_too_weak_is_refused_before_any_row(tmp_path):
    words = ["+stage=verify", "+experiment=quick", "sandbox.level=process", "sandbox.require=namespaces", "run.dir=run"]
    done = command(tmp_path, *words)
    assert done.returncode == 2 and "sandbox." in done.stderr
    assert not (tmp_path / "run" / "verdicts.jsonl").exists()


def test_candidates_do_not_see_the_files_of_the_run(tmp_path):
    """Expected values are in the input, in the verdicts and in the cache."""
    places = [tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "cache"]
    code = "import os\ndef f(paths):\n    return [os.access(path, os.R_OK) for path in paths]\n"
    case = {"args": [list(map(str, places))], "expected": [False] * len(places)}
    places[0].write_text(json.dumps({"id": 1, "code": code, "entry_point": "f", "cases": [case]}))
    words = [
        f"verify.input={places[0]}",
        f"verify.output={places[1]}",
        f"cache.path={places[2]}",
        "sandbox.require=namespaces",
    ]
    done = command(tmp_path, "+stage=verify", *words)
    if "sandbox.require" in done.stderr:
        pytest.skip("this machine cannot hide files")
    assert done.returncode == 0 and rows(places[1])[0]["outcome"] == "passed", rows(places[1])
