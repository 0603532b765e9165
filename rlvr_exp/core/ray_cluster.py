"""The connection to a Ray cluster, and the copy of this package that its nodes run.

A node needs Ray and the Python packages of this installation, but not this package: the caller uploads its own copy, so that all
nodes run the same code.
"""

import hashlib
import os
import signal
import socket
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem

INSTALL = "pip install 'rlvr_exp[ray]'"
PACKAGE = Path(__file__).resolve().parents[1]
CONNECT_S = 10.0
UNPACKED = ("__pycache__", ".mypy_cache")


def not_installed(where: str) -> InputProblem | None:
    """The problem of an option that needs Ray, if the package is missing."""
    if find_spec("ray") is not None:
        return None
    return InputProblem(where, "the package ray is not installed", "ray", "local", "", INSTALL)


def join_cluster(where: str, address: str) -> str:
    """Connect this process to a cluster and return the address. A process connects once and keeps the connection.

    Args:
        where: the option that holds the address, for messages.
        address: HOST:PORT. Empty: the variable RAY_ADDRESS, else the cluster that `ray start` has started on this machine, else
            a new cluster of this machine, which ends with this process.

    Raises:
        InputError: Ray is not installed, or no such cluster answers.
    """
    if problem := not_installed(where) or _unreachable(where, address):
        raise InputError(problem)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    import ray

    if not ray.is_initialized():
        with tempfile.TemporaryDirectory() as folder:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FutureWarning)
                    ray.init(
                        address=address or None,
                        runtime_env={"working_dir": str(_packed(Path(folder)))},
                        include_dashboard=False,
                        log_to_driver=False,
                        logging_level="error",
                    )
            except (ConnectionError, RuntimeError, ValueError, OSError) as fault:
                reason = next(iter(str(fault).strip().splitlines()), type(fault).__name__)
                raise InputError(_no_cluster(where, reason, address)) from fault
            finally:
                _restore(handlers)
    return str(ray.get_runtime_context().gcs_address)


def _unreachable(where: str, address: str) -> InputProblem | None:
    """The problem of an address at which nothing listens: Ray itself would try for many minutes."""
    named = address or os.environ.get("RAY_ADDRESS", "")
    if named in ("", "auto", "local"):
        return None
    host, _, port = named.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        return _no_cluster(where, "no address of a cluster", named)
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except OSError as fault:
        return _no_cluster(where, fault.strerror or str(fault), named)
    return None


def _no_cluster(where: str, reason: str, address: str) -> InputProblem:
    remedy = "start one with `ray start --head`, or correct the address; this machine must be one of its nodes"
    return InputProblem(where, f"no cluster answers: {reason}", address, "HOST:PORT", "", remedy)


def _restore(handlers: Mapping[signal.Signals, Any]) -> None:
    """Ray ends the process at SIGTERM. A run saves its state first, by a handler of its own."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)


@cache
def code_digest() -> str:
    """A digest of the source files of this package, without the data of `assets`."""
    digest = hashlib.blake2b(digest_size=12)
    for path in _files(PACKAGE):
        if path.suffix == ".py":
            digest.update(f"{path.relative_to(PACKAGE)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not {*UNPACKED} & {*path.parts})


def _packed(folder: Path) -> Path:
    """An archive of the package and, in a checkout, of its configuration groups. Equal files give equal bytes, which Ray uploads
    once."""
    archive = folder / "rlvr_exp.zip"
    groups = PACKAGE.parent / "conf"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in (*_files(PACKAGE), *(_files(groups) if (groups / "config.yaml").is_file() else ())):
            entry = zipfile.ZipInfo(str(path.relative_to(PACKAGE.parent)))
            entry.external_attr = path.stat().st_mode << 16
            packed.writestr(entry, path.read_bytes())
    return archive
