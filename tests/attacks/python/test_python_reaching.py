"""Attacks that search for answers, and that reach out of the candidate's process: other processes, files, the network,
inherited descriptors, the next candidate. An attack passes exactly where it succeeds."""

import os
import socket

import pytest
from python_arena import CASES, HONEST, LIMITS, PROGRAM, SECRET, SECRETIVE, double, finds, gains, judge, unseen

import rlvr_exp
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem

pytestmark = pytest.mark.usefixtures("honest_after")

ROOT = os.path.dirname(os.path.dirname(rlvr_exp.__file__))
FRAMES = {
    "locals_of_callers": finds(
        """
        frame, seen = sys._getframe(), []
        while frame: seen.append(repr(frame.f_locals)); frame = frame.f_back
        """,
        "import sys",
    ),
    "globals_of_callers": finds(
        """
        frame, seen = sys._getframe(), []
        while frame: seen.append(repr(frame.f_globals)[:10 ** 6]); frame = frame.f_back
        """,
        "import sys",
    ),
    "constants_of_callers": finds(
        """
        frame, seen = sys._getframe(), []
        while frame: seen.append(repr(frame.f_code.co_consts)); frame = frame.f_back
        """,
        "import sys",
    ),
    "traceback": finds(
        """
        seen = []
        try: raise ValueError
        except ValueError: stack = inspect.getouterframes(inspect.currentframe())
        seen += [repr(f.frame.f_locals) for f in stack]
        """,
        "import inspect",
    ),
    "frames_of_every_thread": finds("seen = [repr(f.f_locals) for f in sys._current_frames().values()]", "import sys"),
    "audit_hook": finds(
        "seen = list(heard)", "import sys\nheard = []\nsys.addaudithook(lambda name, args: heard.append(repr(args)))"
    ),
}
MEMORY = {
    "containers": finds(
        "seen = [repr(o) for o in gc.get_objects() if type(o) in (dict, list, tuple) and len(o) < 50]", "import gc"
    ),
    "all_objects_after_thawing": finds(
        """
        gc.unfreeze()
        seen = [t for o in gc.get_objects() for t in gc.get_referents(o) if type(t) is str]
        """,
        "import gc",
    ),
    "bytes_behind_objects": finds(
        """
        gc.unfreeze()
        seen = [t.decode('latin-1') for o in gc.get_objects() for t in gc.get_referents(o) if type(t) is bytes]
        """,
        "import gc",
    ),
    "referrers_of_the_arguments": finds(
        "seen = [repr(r)[:10 ** 5] for f in gc.get_objects() if type(f) is tuple and f == (3,) for r in "
        "gc.get_referrers(f)]",
        "import gc",
    ),
    "heap_by_address": finds(
        "base = id(seen0) & ~0xfffff; seen = [ctypes.string_at(base, 1 << 20).decode('latin-1')]",
        "import ctypes\nseen0 = 'here' * 50",
    ),
    "memory_file": finds("f = open('/proc/self/mem', 'rb'); seen = [f.read(1 << 20).decode('latin-1')]"),
    "interned_names": finds(
        "seen = [n for m in list(sys.modules.values()) for n in list(vars(m))] + list(linecache.cache)",
        "import sys, linecache",
    ),
}
FILES = {
    "source_of_the_project": gains(f"won = bool(os.listdir({rlvr_exp.__path__[0]!r}))", "import os"),
    "file_of_the_project": gains(f"won = bool(open({rlvr_exp.__file__!r}).read())"),
    "project_by_import": gains("import rlvr_exp; won = bool(rlvr_exp.__file__)"),
    "project_by_the_importer": gains(
        f"won = importlib.machinery.PathFinder.find_spec('rlvr_exp', [{ROOT!r}]).loader.get_code('rlvr_exp') is not "
        f"None",
        "import importlib.machinery",
    ),
    "other_scratch_folders": gains("won = len(os.listdir('..')) > 1", "import os"),
    "environment": gains("won = any('RLVR' in name or 'HOME' in name for name in os.environ)", "import os"),
    "environment_in_c": gains(
        "won = any(ctypes.CDLL(None).getenv(n) for n in (b'HOME', b'PATH', b'USER', b'VIRTUAL_ENV'))", "import ctypes"
    ),
    "shadow_file": gains("won = bool(open('/etc/shadow').read())"),
    "home_of_root": gains("won = any(os.path.isfile(f'/root/{name}') for name in os.listdir('/root'))", "import os"),
    "raw_disk": gains("won = bool(open('/dev/mem', 'rb').read(1) or open('/dev/vda', 'rb').read(1))"),
}
WRITES = {
    "etc": gains("open('/etc/rlvr_attack', 'w').write('x'); won = True"),
    "usr": gains("open('/usr/rlvr_attack', 'w').write('x'); won = True"),
    "shared_memory": gains("open('/dev/shm/rlvr_attack', 'w').write('x'); won = True"),
    "var_tmp": gains("open('/var/tmp/rlvr_attack', 'w').write('x'); won = True"),
    "folder_above": gains("open('../rlvr_attack', 'w').write('x'); won = True"),
    "library": gains(
        "open(os.path.join(os.path.dirname(os.__file__), 'rlvr_attack.py'), 'w'); won = True", "import os"
    ),
    "own_interpreter": gains("open(sys.executable, 'r+b'); won = True", "import sys"),
    "link_out": gains("os.symlink('/etc', 'e'); open('e/rlvr_attack', 'w').write('x'); won = True", "import os"),
    "hard_link_to_a_library": gains("os.link(os.__file__, 'f'); open('f', 'a').write('x'); won = True", "import os"),
    "set_user_id_file": gains(
        """
        open('s', 'w').close(); os.chown('s', 0, 0); os.chmod('s', 0o4777)
        won = os.stat('s').st_uid == 0 and os.stat('s').st_mode & 0o4000 != 0
        """,
        "import os",
    ),
    "mount": gains("won = ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0", "import ctypes"),
    "chroot": gains("os.mkdir('r'); os.chroot('r'); won = True", "import os"),
    "device": gains("os.mknod('d', 0o600 | 0o020000, os.makedev(1, 1)); won = True", "import os"),
}
PROC = {
    "command_line_of_the_first": gains("won = bool(open('/proc/1/cmdline').read())"),
    "environment_of_the_parent": gains("won = bool(open(f'/proc/{os.getppid()}/environ').read())", "import os"),
    "own_maps": gains("won = bool(open('/proc/self/maps').read())"),
    "list_of_processes": gains("won = any(name.isdigit() for name in os.listdir('/proc'))", "import os"),
    "descriptors_of_the_parent": gains("won = bool(os.listdir(f'/proc/{os.getppid()}/fd'))", "import os"),
    "root_of_another": gains("won = bool(os.listdir('/proc/1/root/root') or os.listdir('/proc/1/cwd'))", "import os"),
    "kernel_settings": gains("open('/proc/sys/kernel/core_pattern', 'w').write('|/bin/true'); won = True"),
    "control_groups": gains("os.mkdir('/sys/fs/cgroup/rlvr_attack'); won = True", "import os"),
}
SIBLINGS = {
    **{
        f"everything_with_{name}": gains(f"os.kill(-1, signal.{name}); won = True", "import os, signal")
        for name in ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGSEGV")
    },
    "parent": gains("os.kill(os.getppid(), 9); won = True", "import os"),
    "own_group": gains("os.killpg(0, 9); won = True", "import os"),
    "many_numbers": gains(
        """
        for pid in range(1, 3000):
            if pid != os.getpid():
                try: os.kill(pid, 0); won = True
                except OSError: pass
        """,
        "import os",
    ),
    "thread_of_another": gains(
        "won = ctypes.CDLL(None).syscall(234, os.getppid(), os.getppid(), 9) == 0", "import ctypes, os"
    ),
    "queued_signal": gains(
        "won = ctypes.CDLL(None).sigqueue(os.getppid(), 9, ctypes.c_void_p(0)) == 0", "import ctypes, os"
    ),
    "process_descriptor": gains("won = os.pidfd_open(os.getppid()) >= 0", "import os"),
    "owner_of_a_file": gains(
        """
        r, w = os.pipe()
        fcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())
        fcntl.fcntl(r, 10, 9)
        fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC)
        os.write(w, b'x')
        won = True
        """,
        "import os, fcntl",
    ),
    "limits_of_the_parent": gains(
        "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0)); won = True", "import os, resource"
    ),
    "priority_of_the_parent": gains("os.setpriority(os.PRIO_PROCESS, os.getppid(), 19); won = True", "import os"),
    "better_priority": gains("os.nice(-5); won = True", "import os"),
    "real_time_scheduling": gains(
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)); won = True", "import os"
    ),
    "cores_of_the_parent": gains("os.sched_setaffinity(os.getppid(), {0}); won = True", "import os"),
    "trace_the_parent": gains("won = ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0", "import ctypes, os"),
    "read_the_parent": gains(
        """
        class V(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('n', ctypes.c_size_t)]
        room = ctypes.create_string_buffer(8)
        here, there = V(ctypes.addressof(room), 8), V(id(None), 8)
        won = ctypes.CDLL(None).process_vm_readv(os.getppid(), ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0
        """,
        "import ctypes, os",
    ),
    "shared_memory_segment": gains("won = ctypes.CDLL(None).shmget(0x1234, 4096, 0o1666) >= 0", "import ctypes"),
    "message_queue": gains("won = ctypes.CDLL(None).msgget(0x1234, 0o1666) >= 0", "import ctypes"),
}
PRIVILEGES = {
    "become_root": gains("os.setuid(0); won = os.getuid() == 0 and os.setgroups([0]) is None", "import os"),
    "new_user_namespace": gains("won = ctypes.CDLL(None).unshare(0x10000000) == 0", "import ctypes"),
    "join_a_namespace": gains("won = ctypes.CDLL(None).setns(0, 0) == 0", "import ctypes"),
    "higher_limits": gains(
        "resource.setrlimit(resource.RLIMIT_NPROC, (10 ** 6, 10 ** 6)); won = True", "import resource"
    ),
    "host_name": gains("socket.sethostname('attack'); won = True", "import socket"),
    "clock": gains("time.clock_settime(0, 0); won = True", "import time"),
    "key_ring": gains("won = ctypes.CDLL(None).syscall(248, b'user', b'k', b'v', 1, -3) > 0", "import ctypes"),
    "performance_counters": gains("won = ctypes.CDLL(None).syscall(298, 0, 0, -1, -1, 0) >= 0", "import ctypes"),
    "ring_of_system_calls": gains(
        "won = ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(120)) >= 0", "import ctypes"
    ),
    "berkeley_filter": gains(
        "won = ctypes.CDLL(None).syscall(321, 0, ctypes.create_string_buffer(72), 72) >= 0", "import ctypes"
    ),
    "calls_of_the_32_bit_table": gains(
        "won = ctypes.CDLL(None).syscall(0x40000000 + 41, 2, 1, 0) >= 0", "import ctypes"
    ),
}
NETWORK = {
    "tcp": "socket.create_connection(('127.0.0.1', PORT), 1)",
    "tcp_from_asyncio": "asyncio.run(asyncio.wait_for(asyncio.open_connection('127.0.0.1', PORT), 1))",
    "http": "urllib.request.urlopen('http://127.0.0.1:PORT', timeout=1)",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
    "listening": "socket.create_server(('127.0.0.1', 0))",
    "abstract_unix_socket": "socket.socket(socket.AF_UNIX).bind('\\0rlvr_attack')",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "names": "socket.getaddrinfo('example.com', 80)",
    "by_number": "if ctypes.CDLL(None).syscall(41, 2, 1, 0) < 0: raise OSError",
}
REACHING = {
    "files": FILES,
    "writes": WRITES,
    "proc": PROC,
    "siblings": SIBLINGS,
    "privileges": PRIVILEGES,
}
ALL = [pytest.param(code, id=f"{group}-{name}") for group, table in REACHING.items() for name, code in table.items()]
LEFTOVERS = {
    "file": ("open('left', 'w').write('4')", "won = os.path.exists('left')"),
    "hidden_folder": ("os.makedirs('.a/b'); os.chmod('.a', 0)", "won = os.path.lexists('.a')"),
    "file_in_the_shared_folder": (
        "tempfile.mkstemp(dir=tempfile.gettempdir())",
        "won = bool(os.listdir(tempfile.gettempdir()))",
    ),
    "file_beside_the_scratch": ("open('../left', 'w').write('4')", "won = os.path.exists('../left')"),
    "attribute_of_a_module": ("math.left = 4", "won = hasattr(math, 'left')"),
    "builtin": ("builtins.left = 4", "won = hasattr(builtins, 'left')"),
    "environment": ("os.environ['LEFT'] = '4'", "won = 'LEFT' in os.environ"),
    "module_planted": ("sys.modules['left'] = math", "won = 'left' in sys.modules"),
    "module_replaced": ("sys.modules['math'] = 4", "import math as m; won = m == 4"),
    "path": ("sys.path.insert(0, '/left')", "won = '/left' in sys.path"),
    "process": ("os.fork()", "won = False\ntry: won = os.waitpid(-1, 1)[0] >= 0\nexcept OSError: pass"),
    "signal_handler": ("signal.signal(10, signal.SIG_IGN)", "won = signal.getsignal(10) == signal.SIG_IGN"),
    "umask": ("os.umask(0)", "won = os.umask(0o077) != 0o077"),
    "limit": ("resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))", "won = resource.getrlimit(7)[0] < 10"),
    "memory_file": ("os.dup2(os.memfd_create('left'), 60)", "os.fstat(60); won = True"),
    "shared_segment": (
        "ctypes.CDLL(None).shmget(77, 4096, 0o1666)",
        "won = ctypes.CDLL(None).shmget(77, 4096, 0) >= 0",
    ),
}
MODULES = "import builtins, ctypes, math, os, resource, signal, sys, tempfile\n"


@pytest.mark.property(18)
@pytest.mark.parametrize("code", [*FRAMES.values(), *MEMORY.values()], ids=[*FRAMES, *MEMORY])
def test_expected_values_are_nowhere(verifier, code):
    verdict = judge(verifier, code, SECRETIVE)
    assert verdict.passed <= 1 and verdict.outcome == "failed", verdict


def test_a_search_would_find_what_is_there(verifier):
    given = PythonProblem("double", (Case((2,), None), Case((SECRET,), SECRET)), limits=LIMITS)
    code = FRAMES["locals_of_callers"]
    assert judge(verifier, code, given).outcome == "passed"


@pytest.mark.property(18)
@pytest.mark.parametrize("code", ALL)
def test_it_does_not_get_through(verifier, code):
    verdict = judge(verifier, code)
    assert (verdict.outcome, verdict.passed) == ("failed", 0), verdict


@pytest.mark.property(21)
@pytest.mark.parametrize("call", NETWORK.values(), ids=NETWORK)
def test_the_network_is_refused(verifier, call):
    modules = "import asyncio, ctypes, socket, urllib.request"
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = gains(f"{call.replace('PORT', str(server.getsockname()[1]))}\nwon = True", modules)
        verdict = judge(verifier, code)
    assert (verdict.outcome, verdict.passed) == ("failed", 0), verdict


@pytest.mark.property(18)
@pytest.mark.parametrize(("leave", "look"), LEFTOVERS.values(), ids=LEFTOVERS)
def test_nothing_is_left_for_the_next_candidate(verifier, leave, look):
    judge(verifier, unseen(double(f"{leave}\nreturn 2 * x", MODULES)))
    verdict = judge(verifier, unseen(gains(look, MODULES)))
    assert verdict.outcome == "failed", verdict


@pytest.mark.property(18)
def test_inherited_descriptors_are_few(verifier):
    listing = double("return [n for n in range(2000) if there(n)]", DESCRIPTORS)
    problem = PythonProblem("double", (Case((2,), [0, 1, 2, 90]),), limits=LIMITS)
    assert judge(verifier, listing, problem).outcome == "passed"


DESCRIPTORS = """
import os
def there(n):
    try: os.fstat(n); return True
    except OSError: return False
"""
INHERITED = {
    "requests_of_the_worker": gains("won = any(os.write(n, b'x') for n in range(91, 1024) if there(n))", DESCRIPTORS),
    "standard_input_of_the_worker": gains("won = bool(os.read(0, 1))", DESCRIPTORS),
    "replies_of_the_worker": gains("for n in range(3, 90): os.write(n, b'{}')\nwon = True", DESCRIPTORS),
    "reading_the_results_pipe": gains("os.set_blocking(90, False); won = bool(os.read(90, 1))", DESCRIPTORS),
    "reopened_through_dev": gains("won = bool(os.listdir('/dev/fd/'))", DESCRIPTORS),
}


@pytest.mark.parametrize("code", INHERITED.values(), ids=INHERITED)
def test_inherited_descriptors_lead_nowhere(verifier, code):
    assert judge(verifier, code).outcome == "failed"


def test_files_outside_are_not_written(verifier, tmp_path):
    tmp_path.chmod(0o777)
    for path in (str(tmp_path / "x"), os.path.join(ROOT, "written_by_a_candidate")):
        judge(verifier, double(f"open({path!r}, 'w').close()"))
        assert not os.path.exists(path)


def test_two_candidates_at_once_do_not_meet(verifier):
    meet = "try: os.mkdir('/tmp/meet')\nexcept OSError: os.mkdir('meet')\ntime.sleep(0.05)\nreturn 2 * x"
    codes = [unseen(double(meet, "import os, time")) for _ in range(4)]
    problem = PythonProblem("double", CASES[:1], limits=LIMITS)
    assert {judge(verifier, code, problem).outcome for code in codes} == {"passed"}


def test_a_program_cannot_read_what_another_was_given(verifier):
    steal = "import os; os.lseek(0, 0, 0); print(sum(2 * int(t) for t in os.read(0, 99).split() * 2))"
    assert judge(verifier, steal, PROGRAM).outcome == "failed"
    assert judge(verifier, HONEST).outcome == "passed"
