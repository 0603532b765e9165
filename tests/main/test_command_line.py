"""The command line as a shell sees it: its output, its exit codes, and its speed without heavy imports."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from thinning import thinned

from rlvr_exp.config.schema import STAGES
from rlvr_exp.main import main

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "trl", "datasets", "rich", "numpy", "scipy")
LIGHT_LINES = {
    "bare": ([], 0),
    "help": (["--help"], 0),
    "stage help": (["+stage=grpo", "--help"], 0),
    "version": (["--version"], 0),
    "cfg": (["+stage=grpo", "--cfg", "job"], 0),
    "plan": (["+stage=grpo", "run.dry=true", "model=qwen14b"], 0),
    "plan of a sweep": (["+stage=grpo", "run.dry=true", "--multirun", "seed=0,1"], 0),
    "mistakes": (["+stage=grp", "model=tny", "seed=x"], 2),
    "missing weights": (["+stage=evaluate", "model=qwen14b"], 2),
    "mistake in a sweep": (["+stage=grpo", "-m", "algorithm.group_size=4,1"], 2),
    "wrong reward": (["+stage=grpo", "reward.terms.length.weight=3"], 2),
}
PROBE = f"""
import sys
from rlvr_exp.main import main
code = main(sys.argv[1:])
loaded = set({HEAVY!r}) & set(sys.modules)
sys.stdout.flush()
sys.exit(f"loaded {{loaded}}" if loaded else code)
"""


@pytest.mark.heavy
@pytest.mark.parametrize("name", thinned(LIGHT_LINES))
def test_light_answers_load_nothing_heavy_and_write_nothing(name: str, tmp_path: Path) -> None:
    words, code = LIGHT_LINES[name]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_CACHE": str(tmp_path / "cache")}
    said = subprocess.run(
        [sys.executable, "-c", PROBE, *words],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert said.returncode == code, said.stderr
    assert (said.stderr if code else said.stdout).strip() and not list(tmp_path.iterdir())


ON_ANOTHER_SYSTEM = """
import sys, tempfile
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
sys.platform = sys.argv[1]
from rlvr_exp.main import main
sys.exit(main(["+stage=grpo"]))
"""


@pytest.mark.heavy
@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_another_system_is_refused_in_one_line(system: str, tmp_path: Path) -> None:
    command, env = [sys.executable, "-c", ON_ANOTHER_SYSTEM, system], {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 2 and not said.stdout and not list(tmp_path.iterdir())
    assert said.stderr.splitlines() == [
        f"rlvr_exp needs Linux, this system is {system}: use Linux or the container in .devcontainer/"
    ]


def test_bare_lists_every_stage_and_three_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(f"+stage={name} " in said and stage.about in said for name, stage in STAGES.items())
    assert said.count("python -m rlvr_exp +stage=") == 3


def test_every_listed_stage_exists_and_every_file_is_a_stage() -> None:
    files = {path.stem for path in (ROOT / "rlvr_exp" / "stages").glob("*.py")} - {"__init__"}
    assert files == {stage.module or name for name, stage in STAGES.items()}


def test_help_names_groups_options_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-h"]) == 0
    said = capsys.readouterr().out
    for word in ("qwen14b", "run.dir=DIR", "--multirun", "130", "+experiment=quick", "tensorboard", "hydra.searchpath"):
        assert word in said


def test_help_of_a_stage_explains_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+stage=grpo", "--help", "algorithm.group_size=6"]) == 0
    said = capsys.readouterr().out
    assert "algorithm.group_size=6\n      Completions sampled for each task. (a whole number: at least 1)" in said
    assert "reward.terms.length.scale_tokens=" in said and "evaluate.baseline" not in said


def test_help_of_a_stage_shows_what_its_users_set_and_help_all_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    shown, rest = (_keys(capsys, "+stage=grpo", "--help", *more) for more in ((), ("all",)))
    assert {"algorithm.group_size", "data.path", "optimizer.lr"} <= shown < rest and len(shown) <= 120
    hidden = {"model.scratch.layers", "run.guards.max_skipped", "cache.max_mb"}
    assert hidden <= rest - shown and hidden & _keys(capsys, "+stage=grpo", "--help", "scratch") == {
        "model.scratch.layers"
    }


def _keys(capsys: pytest.CaptureFixture[str], *words: str) -> set[str]:
    assert main([*words]) == 0
    return set(re.findall(r"^  ([a-z_0-9.]+)=", capsys.readouterr().out.partition("Options of")[2], re.MULTILINE))


@pytest.mark.parametrize("stage", [*STAGES, "grpo data=code", "sft data=dafny verifier=dafny"])
def test_help_needs_no_path(stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*f"+stage={stage}".split(), "--help"]) == 0
    assert "run.dir=''" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["algorithm"], 0, "algorithm.group_size=8"),
        (["cascade"], 0, "cascade.mode="),
        (["+stage=sft", "algorithm"], 0, "algorithm.batch_size="),
        (["groop_size"], 2, "did you mean: algorithm.group_size"),
        (["algorithm", "seed=x"], 2, "seed: wrong type"),
    ],
)
def test_help_shows_the_options_that_a_word_is_in(
    words: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--help", *words]) == code
    said = capsys.readouterr()
    assert told in said.out + said.err and "Exit codes" not in said.out and "optimizer.lr" not in said.out


def test_cfg_tells_where_each_value_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+stage=grpo", "+experiment=quick", "seed=3", "--cfg", "job"]) == 0
    said = capsys.readouterr().out
    for line in ("seed: 3  # command line", "dtype: float32  # conf/model/tiny.yaml", "limit: 0  # default"):
        assert line in said
    assert "# conf/experiment/quick/grpo.yaml" in said


def test_problems_are_counted_and_shown_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+stage=grpo", "seed=x", "lrr=1", "--frobnicate"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("3 problems; nothing was started") and "--frobnicate: unknown flag" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["verifier=x", "data.path=/no", "model.path=/no"], ["verifier: no such", "data.path: not", "model.path: no"]),
        (["run=3", "model.path=Org/Model"], ["run: a value", "model.path: no", "remedy: model.name=Org/Model for"]),
        (["data._target_=x", "model.path=/no"], ["data._target_: not an import path"]),
        (["--learning_rate", "1e-3"], ["--learning_rate: unknown flag", "optimizer.lr=1e-3"]),
        (["--group-size=4"], ["--group-size: unknown flag", "algorithm.group_size=4"]),
        (["--multirn", "model.name=/no"], ["did you mean: --multirun", "model.path=/no for a local"]),
    ],
)
def test_what_is_wrong_and_what_is_missing_stand_together(
    words: list[str], told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["+stage=grpo", *words]) == 2
    said = capsys.readouterr().err
    assert [text for text in told if text not in said] == []


@pytest.mark.parametrize("words", [["--multirn"], ["--cfg", "hydra"], ["--cfg"], ["-m", "--cfg", "job", "+stage=grpo"]])
def test_flags_are_checked(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err


def test_a_taken_directory_is_told_with_the_other_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "summary.json").write_text("{}")
    assert main(["+stage=evaluate", "data.path=nowhere", f"run.dir={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert "holds another run" in said and "data.path: not there" in said
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


@pytest.mark.heavy
def test_a_reader_that_leaves_early_is_no_failure() -> None:
    line = f"set -o pipefail; {sys.executable} -m rlvr_exp +stage=grpo --help | head -1"
    said = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 0 and said.stderr == "" and said.stdout.startswith("python -m rlvr_exp")


@pytest.mark.heavy
def test_an_inline_run_begins_in_the_environment_of_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def stage(*_: object) -> int:
        seen.append(os.environ["OMP_NUM_THREADS"])
        return 3

    monkeypatch.setattr("rlvr_exp.main._inline", lambda: seen.append(os.environ["OMP_WAIT_POLICY"]) or stage)
    words = ["+stage=verify", "verify.input=samples", "run.inline=true", "parallel.threads=3", f"run.dir={tmp_path}"]
    assert main(words) == 3 and seen == ["PASSIVE", "3"]
