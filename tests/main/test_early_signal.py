"""A signal that comes while no child runs: before one is started, or once all have ended."""

import os
import signal

import pytest

from rlvr_exp import main as program


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_130_and_no_traceback(number: int, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    before = signal.getsignal(signal.SIGTERM)
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # Ignored where the tests run in the background.
    monkeypatch.setattr(program, "dispatch", lambda _: (os.kill(os.getpid(), number), signal.sigtimedwait([], 1)))
    try:
        assert program.main(["+stage=sft"]) == 130
    finally:
        signal.signal(signal.SIGINT, ours)
    assert capsys.readouterr().err == "interrupted\n" and signal.getsignal(signal.SIGTERM) is before
