"""Death by SIGKILL at a named point of a run, for tests only: the product does not know of it.

KILL_POINT names the point, KILL_STEP the update step (counted from 1), KILL_RANK the rank (0). With KILL_PARENT the
parent of the stage's process dies first. With KILL_BY, the name of a signal, nothing dies: the parent receives the
signal, once.
"""

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

_at = {"step": 0, "asked": 0}


def die() -> None:
    """Kill the complete process at once, as the kernel does."""
    if os.environ.get("RANK", "0") != os.environ.get("KILL_RANK", "0"):
        return
    if "KILL_BY" in os.environ:
        if not _at["asked"]:
            _at["asked"] = 1
            os.kill(os.getppid(), getattr(signal, os.environ["KILL_BY"]))
        return
    if os.environ.get("KILL_PARENT"):
        os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _now() -> bool:
    return _at["step"] == int(os.environ["KILL_STEP"])


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    setattr(owner, name, make(getattr(owner, name)))


def _before(function: Any, when: Callable[..., bool] = lambda *_, **__: True) -> Any:
    def dying(*args: Any, **kwargs: Any) -> Any:
        if _now() and when(*args, **kwargs):
            die()
        return function(*args, **kwargs)

    return dying


def _after(function: Any) -> Any:
    def dying(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if _now():
            die()
        return found

    return dying


def _generation() -> None:
    from rlvr_exp.rollouts import run_episodes

    _replace(run_episodes, "Completion", _after)


def _verification() -> None:
    from rlvr_exp.episodes.types import TRUNCATED
    from rlvr_exp.rollouts import run_episodes

    _replace(
        run_episodes._RolloutLoop,
        "record_verdict",
        lambda old: _before(old, lambda self, place, verdict: verdict is not TRUNCATED),
    )


def _backward() -> None:
    """Within the pass: the loss has its gradient and no weight has."""
    from accelerate import Accelerator

    def hooked(old: Any) -> Any:
        def backward(self: Any, loss: Any, **more: Any) -> Any:
            if _now():
                loss.register_hook(lambda _: die())
            return old(self, loss, **more)

        return backward

    _replace(Accelerator, "backward", hooked)


def _logging() -> None:
    """The row is in the file and there is no checkpoint of it."""
    from rlvr_exp.records.tracking import Tracker

    _replace(Tracker, "log", _after)


def _writing() -> None:
    """Every file of the checkpoint exists except its manifest."""
    from rlvr_exp.training import checkpoints

    _replace(checkpoints, "seal", _before)


def _written() -> None:
    """The checkpoint has its name; `latest` does not link to it and older ones are not removed yet."""
    from rlvr_exp.training.checkpoints import Checkpoints

    _replace(Checkpoints, "_link", _before)


POINTS: Mapping[str, Callable[[], None]] = {
    "generation": _generation,
    "verification": _verification,
    "backward": _backward,
    "logging": _logging,
    "writing": _writing,
    "written": _written,
}


def install() -> None:
    """Arm the point that the environment names, if any."""
    if "KILL_POINT" not in os.environ:
        return
    from rlvr_exp.training.loop import Loop

    def noting(old: Any) -> Any:
        def update(self: Any, step: int) -> Any:
            _at["step"] = step + 1
            return old(self, step)

        return update

    _replace(Loop, "_update", noting)
    POINTS[os.environ["KILL_POINT"]]()


def at(point: str, step: int, **more: str) -> dict[str, str]:
    """The environment of a run that dies there."""
    return {"KILL_POINT": point, "KILL_STEP": str(step), **more}
