"""The levels of isolation: what each reports and leaves open, how a level is required, and where it is refused."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from pools import HARNESS, answer, job, pool_at, pool_of, told

from rlvr_exp.config import verifier as options
from rlvr_exp.core.errors import InputError
from rlvr_exp.sandbox.isolation import kernel
from rlvr_exp.sandbox.isolation.jail import LEVELS
from rlvr_exp.sandbox.pool import Pool

FOLDERS = "rlvr-sandbox-"
HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
REFUSE_NAMESPACES = (
    "import ctypes, os\n"
    "assert ctypes.CDLL(None).unshare(0x10000000) == 0\n"  # as root of a namespace that allows no other
    "open('/proc/self/setgroups', 'w').write('deny')\n"
    "open('/proc/self/uid_map', 'w').write('0 0 1')\nopen('/proc/self/gid_map', 'w').write('0 0 1')\n"
    "open('/proc/sys/user/max_user_namespaces', 'w').write('0')\n"
)
ASK = (
    f"import sys\nsys.path[:0] = [{str(ROOT)!r}, {str(HERE)!r}]\n"
    "from pools import answer, pool_of, told\nfrom rlvr_exp.core.errors import InputError\n"
    "for options in OPTIONS:\n"
    "    try:\n"
    "        with pool_of(**options) as pool: print(told(pool.run([answer(3)])[0])[0], pool.isolation()['level'])\n"
    "    except InputError as fault: print('refused', fault)\n"
    "    for stream in (sys.stdout, sys.stderr): print('--', file=stream, flush=True)\n"
)
WISHES = {
    "none": {},
    "namespaces": {"require": "namespaces"},
    "strict": {"require": "strict"},
    "user": {"require": "user"},
    "level": {"level": "strict"},
}


@pytest.fixture
def folders(monkeypatch):
    """The names of workers' folders on disk, in a place where no other run has any."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        monkeypatch.setattr(tempfile, "tempdir", place)
        yield lambda: [name for name in os.listdir(place) if name.startswith(FOLDERS)]


def test_the_options_name_the_levels_that_there_are():
    assert options.LEVELS == LEVELS  # workers cannot import the configuration, which needs installed packages


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_answers_and_says_what_it_leaves_open(level, folders):
    with pool_at(level) as pool:
        facts = pool.isolation()
        assert facts["level"] == level
        assert set(facts["isolated"]).isdisjoint(facts["not_isolated"])
        assert {"network", "system_calls"} <= set(facts["isolated"])
        assert (facts["not_isolated"] == []) == (level == "strict" and os.geteuid() == 0)
        assert ("own_namespaces" in facts["isolated"]) == (level == "strict")
        assert ("scratch_bounded" in facts["isolated"]) == (level in ("strict", "namespaces"))
        if kernel.landlock_version():
            assert {"files_hidden", "files_read_only"} <= set(facts["isolated"])
        kill, left, honest = pool.run(
            [job("os.kill(os.getppid() or 1, 9)"), job("open('left', 'w')"), job("import wave\ntell(os.listdir())")]
        )
        assert b"PermissionError" in kill.log and left.status == 0
        assert told(honest) == ["[]"]
        assert statuses(pool) == [7, -6, -15, -9, -14]
        assert bool(folders()) == (level in ("user", "process"))
    assert folders() == []


def statuses(pool: Pool) -> list[int]:
    """The results of candidates that end in five ways."""
    codes = ["os._exit(7)", "os.abort()", "import signal\nsignal.raise_signal(15)", "os.kill(os.getpid(), 9)"]
    codes.append("import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ntime.sleep(5)")
    return [result.status for result in pool.run([job(code) for code in codes])]


def test_without_a_wish_strict_is_not_taken():
    with pool_of() as pool:
        assert pool.isolation()["level"] != "strict"


def test_strict_is_taken_where_it_is_required():
    with pool_at("auto", require="strict") as pool:
        assert pool.isolation()["level"] == "strict"
        assert told(pool.run([answer(1)])[0]) == ["1"]


def test_strict_candidates_have_namespaces_of_their_own():
    look = "import socket\ntell((os.getpid(), [name for _, name in socket.if_nameindex()]))"
    with pool_at("strict") as pool:
        results = pool.run([job("tell(os.getpid())")] * 3)
        assert [told(result) for result in results] == [["2"]] * 3
        assert pool.run([job(look)])[0].status == 70  # no sockets to query with


@pytest.mark.parametrize(("level", "require"), [("user", "namespaces"), ("process", "strict")])
def test_a_level_weaker_than_required_is_refused_at_once(level, require):
    with pytest.raises(InputError, match="weaker than sandbox.require"):
        Pool(1, HARNESS, level=level, require=require)


@pytest.mark.parametrize("name", ["level", "require"])
def test_an_unknown_level_is_refused(name):
    with pytest.raises(InputError, match=f"sandbox.{name}"):
        Pool(1, HARNESS, **{name: "bunker"})


@pytest.fixture(scope="module")
def without_namespaces():
    """Output and errors by wish, in a process that may make no namespace."""
    code = f"{REFUSE_NAMESPACES}OPTIONS = {[*WISHES.values()]!r}\n{ASK}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False)
    if "assert ctypes" in done.stderr:
        pytest.skip("no user namespace to try this in")
    return dict(zip(WISHES, zip(done.stdout.split("--\n"), done.stderr.split("--\n"), strict=True), strict=False))


def test_where_namespaces_are_refused_a_weaker_level_serves_and_says_so(without_namespaces):
    out, err = without_namespaces["none"]
    assert out == "3 process\n", err
    (line,) = err.splitlines()
    assert line.startswith("sandbox: level process. Not isolated: ") and "unshare" in line


@pytest.mark.parametrize("require", ["namespaces", "strict", "user"])
def test_where_namespaces_are_refused_requiring_them_is_bad_input(without_namespaces, require):
    out, err = without_namespaces[require]
    assert out.startswith("refused sandbox.require: this machine isolates candidates less than required: process"), err
    assert "unshare" in out and "remedy" in out and f"allowed: {require}" in out


def test_a_level_named_and_not_to_be_had_is_bad_input(without_namespaces):
    out, err = without_namespaces["level"]
    assert out.startswith("refused sandbox.level: cannot be had on this machine: unshare"), err


def test_what_killed_workers_left_is_removed_by_others(folders):
    with pool_of(level="process") as pool:
        pool.run([answer(1)])
        (folder,) = folders()
        os.kill(pool.pids()[0], signal.SIGKILL)
        assert folder in folders()
        with pool_of(level="process") as other:
            other.run([answer(1)])
            until = time.monotonic() + 20
            while folder in folders():
                assert time.monotonic() < until
                time.sleep(0.1)


def test_an_ordinary_user_is_served():
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    python = "/usr/bin/python3"
    if (
        not Path(python).exists()
        or subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False).returncode
    ):
        pytest.skip("no interpreter that every user may run")
    with tempfile.TemporaryDirectory() as copy:
        os.chmod(copy, 0o755)
        subprocess.run(["cp", "-r", ROOT / "rlvr_exp", HERE, copy], check=True)
        subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
        ask = ASK.replace(str(HERE), f"{copy}/sandbox").replace(str(ROOT), copy)
        options = [{}, {"level": "strict"}, {"level": "process"}]
        code = f"import os\nos.setgroups([])\nos.setgid(65534)\nos.setuid(65534)\nOPTIONS = {options!r}\n{ask}"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=120, cwd="/", check=False)
        levels = ["3 namespaces\n", "3 strict\n", "3 process\n", ""]
        assert done.stdout.split("--\n") == levels, done.stderr
