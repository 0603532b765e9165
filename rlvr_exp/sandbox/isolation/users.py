"""User ids and namespaces of a worker, and a copy of the library where another user id cannot reach it. Standard
library only."""

import os
import stat
import sys
from collections.abc import Callable, Sequence

from rlvr_exp.sandbox.isolation import kernel
from rlvr_exp.sandbox.isolation.kernel import Refused

LIBRARY = ".library"
"""Name of the copy of the standard library inside a worker's folder."""
_NEVER_NEEDED = ("site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3")


def spare_id() -> int:
    """The first of two unused user ids, a pair per worker: high in the range of this user namespace."""
    rows = [[int(number) for number in line.split()] for line in _read("/proc/self/uid_map").splitlines()]
    first, _, count = max(rows, key=lambda row: row[2])
    top = min(first + count - 1, (1 << 31) - 2)
    if count < 10_000:
        raise Refused("no spare user ids in this container")
    return top - 1 - 2 * (os.getpid() % min(count // 4, 1 << 22))


def own_namespaces(kinds: int, uid: int | None) -> None:
    """Enter new namespaces, in which this user id, and root's spare `uid`, keep their numbers. Raises Refused."""
    mine, group = os.geteuid(), os.getegid()
    finish_maps = _start_map_helper(uid) if uid is not None else None
    try:
        kernel.unshare(kinds)
    except Refused:
        if finish_maps is not None:
            finish_maps(False)
        raise
    if finish_maps is not None:
        if not finish_maps(True):
            raise Refused("cannot map a spare user id")
        return
    try:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{mine} {mine} 1")
        write("/proc/self/gid_map", f"{group} {group} 1")
    except OSError as fault:
        raise Refused(f"user id map: {fault}") from fault


def _start_map_helper(uid: int) -> Callable[[bool], bool]:
    """Only a process that stays outside may map two ids: fork such a process, which waits for the namespaces."""
    target, (read, write_end) = os.getpid(), os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(write_end)
        try:
            if os.read(read, 1):
                write(f"/proc/{target}/uid_map", f"0 0 1\n{uid} {uid} 2")
                write(f"/proc/{target}/gid_map", f"0 0 1\n{uid} {uid} 2")
            os._exit(0)
        except OSError:
            os._exit(1)
    os.close(read)

    def finish(go: bool) -> bool:
        if go:
            os.write(write_end, b"1")
        os.close(write_end)
        return os.waitpid(helper, 0)[1] == 0

    return finish


def bring_library(parent: str, packages: Sequence[str]) -> None:
    """Copy a standard library from a private folder to where another user id can read it.

    Raises:
        Refused: the packages are there, too, and are too large to copy.
    """
    closed = [path for path in packages if not _open_to_all(path)]
    if closed:
        raise Refused(f"another user id cannot read the packages in {', '.join(closed)}")
    library = os.path.dirname(os.__file__)
    if _open_to_all(library):
        return
    import shutil  # not for the zygotes of every other level: each page they hold costs every fork

    place = os.path.join(parent, LIBRARY)
    os.mkdir(place, 0o755)
    shutil.copytree(library, place, ignore=shutil.ignore_patterns(*_NEVER_NEEDED), dirs_exist_ok=True)
    sys.path[:] = _moved(sys.path, library, place)
    for module in list(sys.modules.values()):
        if type(getattr(module, "__path__", None)) is list:
            module.__path__ = _moved(module.__path__, library, place)
    sys.path_importer_cache.clear()


def _moved(paths: Sequence[str], old: str, new: str) -> list[str]:
    return [new + path.removeprefix(old) if path.startswith(old) else path for path in paths]


def _open_to_all(path: str) -> bool:
    while path != "/":
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        path = os.path.dirname(path)
    return True


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
