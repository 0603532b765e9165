"""What a candidate can reach from inside: files, processes, descriptors, system calls, leftovers. One test each."""

import os
import secrets
import socket
import sys
from pathlib import Path

import pytest
from memory_harness import hidden
from pools import Job, JobLimits, job, pool_at, pool_of, told
from thinning import thinned

import rlvr_exp
from rlvr_exp.sandbox.isolation import files
from rlvr_exp.sandbox.isolation.jail import LEVELS

LIMITS = JobLimits(cpu_s=2, wall_s=10)
TRY = "def can(f, *a, **k):\n    try: f(*a, **k); return True\n    except OSError: return False\n"


@pytest.fixture(scope="module", params=LEVELS)
def pool(request):
    with pool_at(request.param) as pool:
        yield pool


def ask(pool, code: str, limits: JobLimits = LIMITS) -> str:
    result = pool.run([job(TRY + code, limits)])[0]
    assert (result.end, result.status) == ("exit", 0), result
    return told(result)[0]


HIDDEN = [
    os.path.dirname(rlvr_exp.__file__),
    str(Path(__file__).parents[2]),
    "/",
    "/proc",
    "/proc/version",
    "/proc/self/status",
    "/proc/1/environ",
    "/proc/self/mem",
    "/proc/self/environ",
    "/sys/kernel",
    "/etc/passwd",
    "/tmp/..",
    "/home",
    "/var/tmp",
    "/dev/shm",
    "/dev/pts",
    "/usr/bin",
    "/usr/share/doc",
]
SHOWN = {"dev", "etc", "lib", "lib64", "scratch", "tmp", "usr"}
SHOWN |= {part for path in (sys.prefix, sys.base_prefix, os.__file__) for part in Path(path).parts}
"""Names of folders that lead to what a candidate may read."""


@pytest.mark.parametrize("path", thinned(HIDDEN))
def test_the_machines_files_are_hidden(pool, path):
    look = f"def look(p): os.listdir(p) if os.path.isdir(p) else open(p).close()\npath = {path!r}\n"
    seen = f"[name for name in os.listdir(path) if name not in {SHOWN!r}] if os.path.isdir(path) else True"
    assert ask(pool, f"{look}tell(can(look, path) and ({seen}))") in ("False", "[]")


def test_files_of_the_run_are_hidden(pool, tmp_path):
    (tmp_path / "data.jsonl").write_text("answers")
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    assert ask(pool, f"tell(can(open, {str(tmp_path / 'data.jsonl')!r}))") == "False"


@pytest.mark.parametrize(
    "way",
    [
        "os.path.realpath('../../../../..') + PATH",
        "'/proc/self/root' + PATH",
        "'/proc/1/root' + PATH",
        "'/proc/self/cwd/../../..' + PATH",
        "'/scratch/../..' + PATH",
        "'//' + PATH",
    ],
)
def test_roundabout_paths_lead_nowhere(pool, way):
    path = str(Path(rlvr_exp.__file__))
    assert ask(pool, f"PATH = {path!r}\ntell(can(open, {way}))") == "False"


@pytest.mark.parametrize(
    "call",
    [
        "os.chroot('.')",
        "os.fchdir(3)",
        "ctypes.CDLL(None).mount(b'none', b'/', b'tmpfs', 0, b'')",
        "ctypes.CDLL(None).umount2(b'/scratch/own/tmp', 2)",
        "ctypes.CDLL(None).unshare(0x10000000)",
        "ctypes.CDLL(None).setns(0, 0)",
        "ctypes.CDLL(None).syscall(304, 0, b'', 0)",
        "ctypes.CDLL(None).syscall(319, b'm', 0)",
        "ctypes.CDLL(None).syscall(447, 0)",
        "ctypes.CDLL(None).syscall(425, 8, 0)",
        "ctypes.CDLL(None).syscall(240, b'q', 0x42, 0o600, 0)",
        "ctypes.CDLL(None).syscall(101, 16, os.getppid(), 0, 0)",
        "ctypes.CDLL(None).syscall(435, 0, 0)",
        "ctypes.CDLL(None).syscall(1000, 0)",
        "ctypes.CDLL(None).syscall(0x40000000 + 39)",
        "ctypes.CDLL(None).prctl(1, 0)",
        "ctypes.CDLL(None).prctl(4, 1)",
        "ctypes.CDLL(None).prctl(36, 1)",
        "ctypes.CDLL(None).ioctl(0, 0x5412, b'x')",
        "ctypes.CDLL(None).sethostname(b'x', 1)",
        "ctypes.CDLL(None).personality(0x40000)",
        "ctypes.CDLL(None).shmget(0, 4096, 0o1600)",
        "ctypes.CDLL(None).setxattr(b'.', b'user.note', b'1', 1, 0)",
        "ctypes.CDLL(None).sync() or -1",
    ],
)
def test_system_calls_that_reach_out_fail(pool, call):
    code = f"import ctypes\ndef tried():\n    got = {call}\n    if got == -1: raise OSError\ntell(can(tried))"
    assert ask(pool, code) == "False"


def test_a_32_bit_system_call_ends_the_candidate(pool):
    if os.uname().machine != "x86_64":
        pytest.skip("no such calls here")
    # mov eax, 20 (getpid); int 0x80; ret
    code = "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(bytes.fromhex('b814000000cd80c3'))\n"
    code += "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nf()\ntell(1)"
    result = pool.run([job(code)])[0]
    assert (result.end, result.status, told(result)) == ("exit", -31, [])


@pytest.mark.parametrize("target", ["os.getppid()", "1", "-1", "0", "-os.getpgid(os.getppid())"])
@pytest.mark.parametrize("number", [9, 19, 15])
def test_nobody_else_is_signalled(pool, target, number):
    assert ask(pool, f"tell(can(os.kill, {target}, {number}))") == "False"


def test_the_network_is_out_of_reach(pool):
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket\ntell(can(socket.create_connection, ('127.0.0.1', {server.getsockname()[1]}), 1))"
        assert ask(pool, code) == "False"


@pytest.mark.parametrize("family", ["AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_PACKET", "AF_ALG"])
def test_no_socket_can_be_had(pool, family):
    assert ask(pool, f"import socket\ntell(can(socket.socket, socket.{family}, socket.SOCK_DGRAM))") == "False"


def test_a_datagram_pair_that_could_be_turned_elsewhere_is_refused(pool):
    assert ask(pool, "import socket\ntell(can(socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM))") == "False"


def test_inherited_descriptors_are_the_four(pool):
    assert ask(pool, "tell([n for n in range(4096) if can(os.fstat, n)])") == "[0, 1, 2, 90]"


def test_standard_input_is_empty(pool):
    assert ask(pool, "import sys\ntell(sys.stdin.read())") == "''"


def test_only_the_scratch_can_be_written(pool):
    code = "places = ['/', '/tmp/..', os.path.dirname(os.__file__), '/usr/lib', '/dev', '/scratch', '/etc', '/root']\n"
    code += "tell([can(open, p + '/x', 'w') for p in places] + [can(open, os.__file__, 'a'), can(open, 'x', 'w')])"
    assert ask(pool, code) == str([False] * 9 + [True])


def test_temporary_files_are_the_candidates_own(pool):
    code = "import tempfile\nwith tempfile.NamedTemporaryFile() as f:\n    f.write(b'1')\n    tell(os.path.samefile("
    assert ask(pool, code + "os.path.dirname(f.name), '.'))") == "True"


@pytest.mark.parametrize(
    "leave",
    [
        "os.makedirs('a/b/c')\nopen('a/b/c/d', 'w').write('x')\nos.chmod('a/b', 0)",
        "for _ in range(2100): os.mkdir('d'); os.chdir('d')",  # past the longest path
        "os.chmod('.', 0)",
        "os.utime('.', (1, 1))",
        "os.symlink('/', 'root')\nos.mkfifo('fifo')\nos.link('fifo', 'two')",
        "for n in range(300):\n    if not can(open, str(n), 'w'): break",
        "open('\\udcff\\n', 'w')",
    ],
)
def test_nothing_is_left_for_the_next_candidate(pool, leave):
    look = "s = os.stat('.')\ntell((os.listdir(), oct(s.st_mode), s.st_mtime > 1e9, can(open, 'new', 'w')))"
    left = pool.run([job(TRY + leave, JobLimits(cpu_s=10, wall_s=60))])[0]
    assert (left.end, left.status) == ("exit", 0), left
    assert ask(pool, look) == "([], '0o40700', True, True)"


@pytest.mark.parametrize("level", ["namespaces", "process"])
@pytest.mark.parametrize("left", ["in a packet", "in a file"])
@pytest.mark.parametrize("sought", ["in a packet", "in a file"])
def test_what_the_last_candidates_got_and_said_is_nowhere_in_memory(level, left, sought):
    secret = "0123456789abcdef" + secrets.token_hex(16)
    padding = {"in a packet": b"", "in a file": b"-" * (1 << 16)}
    leave = b"leave:" + padding[left] + secret.encode()
    seek = b"seek:" + hidden(secret) + b":" + padding[sought]
    limits = JobLimits(cpu_s=5, wall_s=60, output_kb=8192, result_kb=8192)
    with pool_at(level, harness="memory_harness") as pool:
        results = pool.run([*[Job(leave, limits)] * 3, Job(seek, limits), Job(seek + secret.encode(), limits)])
    (searched, found), (_, control) = (map(int, told(result)[0].split()) for result in results[3:])
    assert all(secret in result.log.decode() for result in results[:3])
    assert searched > 5 and control > 0
    assert found == 0


def test_the_environment_is_empty_and_the_hash_seed_fixed(pool):
    code = "tell((dict(os.environ), hash('a')))"
    assert ask(pool, code) == ask(pool, code)
    assert ask(pool, code).startswith("({}, ")


def test_the_project_and_the_harness_cannot_be_imported(pool):
    code = "def can_import(n):\n    try: __import__(n); return True\n    except ImportError: return False\n"
    names = ("rlvr_exp", "rlvr_exp.sandbox.worker", "exec_harness", "pools", "pytest", "numpy")
    assert ask(pool, f"{code}tell([can_import(n) for n in {names!r}])") == str([False] * len(names))


def test_packages_without_the_project_where_asked_for():
    limits = JobLimits(cpu_s=20, wall_s=60, memory_mb=3000)
    code = "import numpy, pytest, sys\nfolder = os.path.dirname(os.path.dirname(numpy.__file__))\n"
    code += "tell((os.environ['OPENBLAS_NUM_THREADS'], numpy.ones(3).sum(), [n for n in os.listdir(folder) if n == 'rlvr_exp'], "
    code += f"can(open, {os.path.dirname(rlvr_exp.__file__) + '/__init__.py'!r})))"
    with pool_of(packages=True) as pool:
        assert ask(pool, code, limits) == "('1', np.float64(3.0), [], False)"


def test_processes_where_asked_for():
    limits = JobLimits(cpu_s=10, wall_s=60, memory_mb=500)
    code = (
        "import subprocess, sys\nchild = subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True)\n"
    )
    code += "sleeper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\nsleeper.terminate()\n"
    with pool_of(processes=2) as pool:
        assert ask(pool, f"{code}tell((child.stdout, sleeper.wait()))", limits) == "(b'42\\n', -15)"
        assert ask(pool, "tell(can(os.kill, os.getppid(), 9))") == "False"


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_honest_programs_run_at_every_level(pool):
    code = """
import asyncio, threading, signal, shutil, sqlite3, tempfile, zoneinfo, decimal, concurrent.futures
async def wait(): await asyncio.sleep(0.01); return 1
assert asyncio.run(wait()) == 1
with concurrent.futures.ThreadPoolExecutor(8) as threads: assert sum(threads.map(int, '123')) == 6
folder = tempfile.mkdtemp()
open(folder + '/a', 'w').write('x')
shutil.copy2(folder + '/a', folder + '/b')
shutil.rmtree(folder)
sqlite3.connect('x.db').execute('create table a (b)')
zoneinfo.ZoneInfo('Europe/Berlin')
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.01)
time.sleep(0.1)
tell(seen)
"""
    assert ask(pool, code) == "[1]"


def test_a_pair_shares_a_folder_that_is_empty_for_the_next_one(pool):
    serve = "import socket, tempfile\ns = socket.socket(fileno=fd)\npath = s.recv(999).decode()\n"
    serve += "open('b', 'w').close()\ns.sendall(repr((sorted(os.listdir()), path == os.getcwd())).encode())"
    asking = "import socket\nopen('a', 'w').close()\ns = socket.socket(fileno=fd)\n"
    asking += "s.sendall(os.getcwd().encode())\ntell(s.recv(999).decode())\ntell(sorted(os.listdir()))"
    first, again, alone = pool.run([*[job(asking, LIMITS, serve)] * 2, job("tell(os.listdir())")])
    assert told(first) == ["\"(['a', 'b'], True)\"", "['a', 'b']"], first
    assert told(again) == told(first)
    assert told(alone) == ["[]"]


def test_the_root_is_put_together_where_it_covers_nothing_that_is_shown():
    assert files._place_for(["/usr/lib"]) == "/tmp"
    assert files._place_for(["/usr/lib", "/tmp/checkout/.venv/lib"]) != "/tmp"
