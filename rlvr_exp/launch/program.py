"""Starts the program as a process of its own, for runs that are part of another: a chain's links, a study's runs."""

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import IO

from rlvr_exp.sandbox.isolation import kernel


def start_program(
    words: Sequence[str],
    out: int | IO[str],
    env: Mapping[str, str] | None = None,
    cores: Collection[int] = (),
) -> "subprocess.Popen[str]":
    """`python -m rlvr_exp WORDS`; it dies with the thread that starts it, and a terminal's signals do not reach it.

    Args:
        out: where its output and errors go.
        env: None: this process's.
        cores: those that it may use; empty: all that this process may.
    """

    def prepare() -> None:
        kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)  # Two may not write one directory.
        if cores:
            os.sched_setaffinity(0, cores)

    return subprocess.Popen(
        [sys.executable, "-m", "rlvr_exp", *words],
        stdout=out,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=env,
        start_new_session=True,  # A signal from the terminal reaches it once, from whoever started it.
        preexec_fn=prepare,
    )
