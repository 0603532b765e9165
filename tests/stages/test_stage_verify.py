"""Candidates from a file: one answer per row, in order, whatever the rows hold and however often a run is
interrupted."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM, json_rows, run_program
from thinning import thinned

from rlvr_exp.config.compose import compose
from rlvr_exp.config.tree import PACKAGE, conf_directory
from rlvr_exp.core.errors import GuardStop, InputError, Interrupted
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.resumable_jsonl import KEYS, VerdictFile, row_of
from rlvr_exp.stages import verify
from rlvr_exp.verifiers.base import Verdict

OWN = '''
"""A verifier that does what its candidate says."""
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.verifiers.base import Verdict, Verifier
from rlvr_exp.verifiers.futures import completed_future


@dataclass
class Obedient(Verifier):
    name, version, row_format = "obedient", "1", "dafny"
    tool_version: str = "1"
    level: str = "namespaces"
    threads: int = 4

    def __post_init__(self):
        if self.tool_version == "absent":
            raise InputError(InputProblem("verifier", "the tool is not here", remedy="install it"))
        self._threads = ThreadPoolExecutor(self.threads)

    def submit(self, request):
        word, _, rest = (request.candidate.text or "").partition(" ")
        if word == "refuse":
            raise RuntimeError("cannot take this")
        return self._threads.submit(self._do, word, rest)

    def _do(self, word, rest):
        if word == "sleep":
            time.sleep(float(rest))
        if word == "raise":
            raise RuntimeError(rest)
        if word == "fail":
            return Verdict("failed", "verify", total=2, passed=1, seconds=0.5, log=rest)
        if word == "cheat":
            return Verdict("rejected", rule="spec-changed")
        if word == "silent":
            return Verdict("no_verdict", log=rest)
        return Verdict("passed", passed=2, total=2)

    def tool(self):
        return {"oracle": self.tool_version}

    def isolation(self):
        fault = {"fault": "weaker than asked"} if self.level == "refused" else {}
        return {"level": self.level, "isolated": ["files"], "not_isolated": ["network"], **fault}

    def close(self):
        self._threads.shutdown(cancel_futures=True)


class Formless(Obedient):
    row_format = ""
'''


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "verifier").mkdir()
    (folder / "obedience.py").write_text(OWN)
    for name in ("Obedient", "Formless"):
        (folder / "verifier" / f"{name.lower()}.yaml").write_text(f"_target_: obedience.{name}\n")
    return folder


@pytest.fixture
def words(own, tmp_path, monkeypatch):
    """The options of a verification of `tmp_path/in.jsonl`."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    files = [f"verify.input={tmp_path / 'in.jsonl'}", f"verify.output={tmp_path / 'out.jsonl'}"]
    return ["+stage=verify", f"hydra.searchpath=[{own}]", "verifier=obedient", *files]


@pytest.fixture
def start(words, tmp_path):
    """Runs the stage in this process; `start.events` is what a person would see."""

    def go(*more, tune=None):
        go.count += 1
        context = RunContext(tmp_path / f"run{go.count}", go.events.append)
        manifest.begin(context.directory, "verify", 0, [], "")
        go.context = context
        if tune:
            tune(context)
        return verify.run(compose([*words, *more]).config, context)

    go.count, go.events = 0, []
    return go


def row(identity, candidate="pass"):
    return {"id": identity, "program": "p", "candidate": candidate}


ANSWER = row_of(1, Verdict("passed"))


def put(folder: Path, *rows) -> None:
    texts = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in rows]
    (folder / "in.jsonl").write_bytes(b"".join(text + b"\n" for text in texts))


def out(folder: Path) -> list[dict]:
    return json_rows(folder / "out.jsonl")


def test_every_row_is_answered_in_order_with_exactly_the_keys(start, tmp_path):
    put(tmp_path, row("slow", "sleep 0.3"), row(2, "fail why"), row("c", "cheat"), row("d"))
    result = start()
    rows = out(tmp_path)
    assert [tuple(one) for one in rows] == [KEYS] * 4 and [one["id"] for one in rows] == ["slow", 2, "c", "d"]
    assert rows[1] == {
        "id": 2,
        "outcome": "failed",
        "bucket": "verify",
        "rule": None,
        "score": 0.5,
        "passed": 1,
        "total": 2,
        "seconds": 0.5,
        "cached": False,
        "log": "why",
    }
    assert rows[2]["rule"] == "spec-changed" and rows[2]["bucket"] is None
    assert result.after["passed"] | {"low": 0, "high": 0} == {"value": 0.5, "low": 0, "high": 0, "n": 4, "samples": 1}
    assert result.metrics["bucket/verify"] == result.metrics["rule/spec-changed"] == 1
    assert start.events[-1]["text"].startswith("4 rows: 2 passed, 1 failed (verify 1), 1 rejected (spec-changed 1)")


def test_the_manifest_says_what_judged(start, tmp_path):
    put(tmp_path, row(1))
    start("verifier.tool_version=7")
    told = json.loads((start.context.directory / "manifest.json").read_text())
    assert told["verifier"]["tool"] == {"oracle": "7"} and told["verifier"]["isolation"]["level"] == "namespaces"
    assert told["input"]["rows"] == 1


RUBBISH = [b"{", b"\xff\xfe", b"[]", b'"x"', b"9" * 5000, b"[" * 10_000, json.dumps({"id": "kept"}).encode()]


def test_rows_that_cannot_be_read_are_answered_in_their_place(start, tmp_path):
    put(tmp_path, row("first"), *RUBBISH, b"", row("last"), {"id": "first", "program": "p", "candidate": "fail"})
    start("verifier.max_no_verdict_rate=1")
    rows = out(tmp_path)
    assert [one["id"] for one in rows] == ["first", *[None] * 6, "kept", "last", "first"]
    assert all(one["outcome"] == "no_verdict" and one["log"].startswith("line ") for one in rows[1:8])
    assert rows[3]["log"] == "line 4: not a JSON object but a list"
    assert [one["outcome"] for one in (rows[0], *rows[8:])] == ["passed", "passed", "failed"]


def test_a_row_that_is_too_long_is_answered(start, tmp_path):
    put(tmp_path, row(1), row(2, "x" * 2**20), row(3))
    start("verify.max_row_mb=1", "verifier.max_no_verdict_rate=1")
    assert [(one["id"], one["outcome"]) for one in out(tmp_path)] == [
        (1, "passed"),
        (None, "no_verdict"),
        (3, "passed"),
    ]


def test_a_verifier_that_fails_on_a_row_goes_on_with_the_rest(start, tmp_path, capsys):
    put(tmp_path, row(1, "raise by itself"), row(2, "refuse"), row(3))
    start("verifier.max_no_verdict_rate=1")
    assert [one["log"].partition(" (")[0] for one in out(tmp_path)] == [
        "the verifier failed: RuntimeError: by itself",
        "the verifier failed: RuntimeError: cannot take this",
        "",
    ]
    assert "Traceback" in capsys.readouterr().err


def test_past_the_rate_every_row_is_answered_before_the_stop(start, tmp_path):
    put(tmp_path, row(1, "silent grader broke"), *(row(number) for number in range(2, 11)))
    with pytest.raises(GuardStop, match="1 of 10 requests had no verdict.* grader broke"):
        start()
    assert len(out(tmp_path)) == 10 and start.context.metrics["outcome/no_verdict"] == 1
    (tmp_path / "out.jsonl").unlink()
    start("verifier.max_no_verdict_rate=0.1")


def test_a_long_log_is_capped_and_strict_json(start, tmp_path):
    put(tmp_path, row(1, "fail " + "\ud800" + "y" * 100_000 + "end"))
    start()
    log = out(tmp_path)[0]["log"]
    assert len(log) < 2100 and log.endswith("end") and log.encode()


def test_gzip_is_read(start, tmp_path):
    put(tmp_path, row(1), row(2, "fail"))
    (tmp_path / "in.jsonl").write_bytes(gzip.compress((tmp_path / "in.jsonl").read_bytes()))
    start()
    assert [one["outcome"] for one in out(tmp_path)] == ["passed", "failed"]


def test_an_empty_file_has_no_answers(start, tmp_path):
    put(tmp_path)
    assert start().after == {} and out(tmp_path) == []


def test_without_an_output_verdicts_stand_in_the_run_directory(start, tmp_path):
    put(tmp_path, row(1))
    start("verify.output=''")
    assert json.loads((start.context.directory / "verdicts.jsonl").read_text())["id"] == 1


@pytest.mark.parametrize("kept", ["nothing", "some", "torn", "all"])
def test_a_file_of_the_same_input_is_gone_on_with(kept, start, tmp_path):
    put(tmp_path, *(row(number, ["pass", "fail"][number % 2]) for number in range(30)))
    start()
    whole = (tmp_path / "out.jsonl").read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == 10]
    size = {"nothing": 0, "some": ends[9], "torn": ends[9] + 25, "all": len(whole)}[kept]
    (tmp_path / "out.jsonl").write_bytes(whole[:size])
    result = start()
    assert (tmp_path / "out.jsonl").read_bytes() == whole
    assert result.metrics["rows"] == 30 and result.metrics["outcome/failed"] == 15
    assert result.metrics["system/rows_from_before"] == {"nothing": 0, "some": 10, "torn": 10, "all": 30}[kept]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ((), "input"),
        (("verifier.tool_version=2",), "verifier.tool.oracle"),
        (("sandbox.cpu_s=9",), "verifier.sandbox.cpu_s"),
        (("verifier.level=strict",), "verifier.sandbox.level"),
        (("verify.max_row_mb=2",), "max_row_mb"),
    ],
)
def test_a_file_made_in_another_way_is_refused_and_kept(more, named, start, tmp_path):
    put(tmp_path, row(1))
    start()
    before = (tmp_path / "out.jsonl").read_bytes()
    if not more:
        put(tmp_path, row(1), row(2))
    with pytest.raises(InputError, match=f"was written with another {named}"):
        start(*more)
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_what_only_changes_the_speed_is_no_other_way(start, tmp_path):
    put(tmp_path, row(1), row(2))
    start()
    before = (tmp_path / "out.jsonl").read_bytes()
    again = start("sandbox.workers=3", "verifier.max_no_verdict_rate=0.5", "cache.enabled=false")
    assert again.metrics["system/rows_from_before"] == 2
    assert (tmp_path / "out.jsonl").read_bytes() == before


@pytest.mark.parametrize("content", [b"mine\n", b'{"id": 1}\n'])
def test_a_file_of_something_else_is_refused_and_kept(content, start, tmp_path):
    put(tmp_path, row(1))
    (tmp_path / "out.jsonl").write_bytes(content)
    with pytest.raises(InputError, match="does not record its provenance"):
        start()
    assert (tmp_path / "out.jsonl").read_bytes() == content


def test_a_damaged_line_is_named(start, tmp_path):
    put(tmp_path, *map(row, range(3)))
    start()
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "out.jsonl").write_bytes(lines[0] + b"\0" * 40 + b"\n" + lines[2])
    with pytest.raises(InputError, match="line 2 is damaged"):
        start()


def test_a_full_disk_stops_with_what_to_do_and_leaves_what_is_there(tmp_path):
    with VerdictFile(tmp_path / "out.jsonl", {"input": 1}) as file:
        file.write(ANSWER)
        kept, file._file = file._file, open("/dev/full", "wb", buffering=0)
        with pytest.raises(GuardStop, match="No space left on device.* after the 1 existing rows"):
            file.write(ANSWER)
        kept.close()
    assert len(out(tmp_path)) == 1


def test_one_run_at_a_time_writes_a_file(start, tmp_path):
    import fcntl

    put(tmp_path, row(1))
    with open(tmp_path / "out.jsonl", "a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="being written by another run"):
            start()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("verifier.tool_version=absent",), "the tool is not here"),
        (("verifier.level=refused",), "weaker than asked"),
        (("verifier=formless",), "takes no rows of a file"),
        (("verify.output=/proc/none/out.jsonl",), "cannot be written"),
    ],
)
def test_what_cannot_work_is_refused_before_any_row(more, told, start, tmp_path):
    put(tmp_path, row(1))
    with pytest.raises(InputError, match=told):
        start(*more)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_weak_isolation_is_said_aloud(start, tmp_path):
    put(tmp_path, row(1))
    start()
    assert not any("isolation level" in str(event.get("text")) for event in start.events)
    start("verifier.level=process", "verify.output=''")
    assert "isolation level process: candidates are not isolated from: network" in [e.get("text") for e in start.events]


def test_an_interrupted_run_keeps_what_is_judged_and_goes_on(start, tmp_path):
    put(
        tmp_path,
        row("slow", "sleep 1"),
        row("fast"),
        row("stuck", "sleep 2"),
        *(row(n, "sleep 0.1") for n in range(60)),
    )

    def interrupt(context):
        told = context.progress

        def progress(**event):
            if start.events and time.monotonic() - began > 0.6:
                context.interrupted = True
            told(**event)

        context.progress = progress

    began = time.monotonic()
    with pytest.raises(Interrupted, match="stopped after"):
        start("verifier.threads=2", tune=interrupt)
    kept = out(tmp_path)
    assert [one["id"] for one in kept[:2]] == ["slow", "fast"] and len(kept) < 40
    assert start.context.metrics["rows"] == len(kept)
    start("verifier.threads=2")
    assert [one["id"] for one in out(tmp_path)] == ["slow", "fast", "stuck", *range(60)]


def test_kill_9_loses_nothing_that_was_written(words, tmp_path):
    put(tmp_path, *(row(number, "sleep 0.02") for number in range(300)))
    for number in range(2):
        run = subprocess.Popen(
            [*PROGRAM, *words, f"run.dir=run{number}"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL
        )
        wanted = 40 * (number + 1)
        while not (tmp_path / "out.jsonl").exists() or len((tmp_path / "out.jsonl").read_bytes().splitlines()) < wanted:
            assert run.poll() is None
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
        run.wait()
        time.sleep(0.5)  # The child dies with it, and the lock with the child.
    before = out(tmp_path)
    done = run_program(tmp_path, *words, "run.dir=last")
    assert done.returncode == 0, done.stdout + done.stderr
    after = out(tmp_path)
    assert [one["id"] for one in after] == list(range(300)) and after[: len(before)] == before
    assert f"resuming after the {len(before)} rows" in done.stdout


def test_one_signal_ends_it_with_130(words, tmp_path):
    put(tmp_path, *(row(number, "sleep 0.05") for number in range(2000)))
    run = subprocess.Popen(
        [*PROGRAM, *words, "run.dir=run"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "out.jsonl").exists() or not (tmp_path / "out.jsonl").stat().st_size:
        assert run.poll() is None
        time.sleep(0.05)
    os.kill(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130, said
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "interrupted" and summary["metrics"]["rows"] == len(out(tmp_path)) > 0


def test_the_command_ends_with_the_codes_of_the_contract(words, tmp_path):
    put(tmp_path, row(1, "fail"), row(2, "cheat"))
    assert run_program(tmp_path, *words).returncode == 0
    put(tmp_path, row(1, "fail"))
    refused = run_program(tmp_path, *words)
    assert refused.returncode == 2 and "was written with another input" in refused.stderr
    (tmp_path / "out.jsonl").unlink()
    put(tmp_path, row(1, "silent"))
    assert run_program(tmp_path, *words).returncode == 3 and len(out(tmp_path)) == 1


def test_the_stage_imports_nothing_heavy():
    code = "import sys, rlvr_exp.child, rlvr_exp.stages.verify, rlvr_exp.verifiers.python_io\n"
    code += "print(*{'torch', 'transformers', 'numpy', 'scipy', 'datasets', 'rich'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert said.stdout.split() == [] and said.returncode == 0, said.stderr


VERIFIERS = sorted(path.stem for path in (conf_directory() / "verifier").glob("*.yaml"))


def samples(verifier: str) -> list[dict]:
    of = "python_io" if verifier == "python_tests" else verifier  # Its rows are that one's.
    return json_rows(PACKAGE / "assets" / "rows" / f"{of}.jsonl")


@pytest.mark.parametrize("verifier", thinned(VERIFIERS))
def test_samples_are_judged_as_they_say(verifier, tmp_path):
    words = ["+stage=verify", "+experiment=quick", f"verifier={verifier}", f"cache.path={tmp_path}/cache"]
    done = run_program(tmp_path, *words, "run.dir=cold")
    if done.returncode == 2:  # Its tool is not on this machine: told, with what to do.
        assert "remedy" in done.stdout + done.stderr and not (tmp_path / "cold" / "verdicts.jsonl").exists()
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    cold = json_rows(tmp_path / "cold" / "verdicts.jsonl")
    for sample, row in zip(samples(verifier), cold, strict=True):
        said = " ".join(filter(None, (row["outcome"], row["bucket"], row["rule"])))
        assert row["id"] == sample["id"] and said.startswith(sample["expect"]), row
    assert run_program(tmp_path, *words, "run.dir=warm").returncode == 0
    warm = json_rows(tmp_path / "warm" / "verdicts.jsonl")
    metrics = json.loads((tmp_path / "warm" / "summary.json").read_text())["metrics"]
    assert metrics["system/verifier_cache_hits_disk"] >= 1
    for first, again in zip(cold, warm, strict=True):
        if first["bucket"] != "timeout":  # A clock's verdict may be one that is not remembered.
            assert first["log"] == again["log"] and (again == first | {"cached": True} or again == first)


def test_an_isolation_that_is_too_weak_is_refused_before_any_row(tmp_path):
    words = ["+stage=verify", "+experiment=quick", "sandbox.level=process", "sandbox.require=namespaces", "run.dir=run"]
    done = run_program(tmp_path, *words)
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
    done = run_program(tmp_path, "+stage=verify", *words)
    if "sandbox.require" in done.stderr:
        pytest.skip("this machine cannot hide files")
    assert done.returncode == 0 and json_rows(places[1])[0]["outcome"] == "passed", json_rows(places[1])
