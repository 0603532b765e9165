"""Several roles trained in turn in one run: each a trainer of its own, all on one model, each on its own adapter.

A role's trainer runs its ordinary loop from its first step to its last, so that optimizer, schedule, step count and
callbacks stay where they are; between turns that loop stands still at the end of a step. While one role learns, the
adapters of the others take no gradient and belong to no running optimizer: they stay bit for bit as they were.

Each role has an optimizer of its own, and under DeepSpeed an engine of its own over the one model. One engine with a
parameter group for each role would not do: ZeRO steps all its groups at once, and Adam moves parameters whose gradient
is zero for as long as their moments are not.
"""

import threading
from collections.abc import Callable
from typing import Any

import torch
from peft import PeftModel
from transformers import Trainer, TrainerCallback

MakeTrainer = Callable[[TrainerCallback], Trainer]
"""Makes a role's trainer, with the callback that is given among its callbacks, the last of them."""


class Roles:
    """Trains the roles of one model, one at a time; a role's name is that of its adapter.

    Used as a context: at its end every role's loop ends as if its last step were done.
    """

    def __init__(self, model: PeftModel):
        self._model = model
        self._turns: dict[str, _Turns] = {}

    def add(self, name: str, make: MakeTrainer) -> None:
        """A role for an adapter that the model has. `make` is called in its first turn, with its adapter active.

        Raises:
            ValueError: the model has no such adapter, or the role is there already.
        """
        if name not in self._model.peft_config:
            raise ValueError(f"Roles.add: no adapter {name!r}; the model has {', '.join(self._model.peft_config)}")
        if name in self._turns:
            raise ValueError(f"Roles.add: {name!r} is there already")
        self._turns[name] = _Turns(name, make)

    def activate(self, name: str) -> None:
        """Answer with a role's adapter; it alone takes gradients."""
        self._model.set_adapter(name)

    def train(self, name: str, steps: int) -> int:
        """Do further update steps of a role; returns all that it has done. Whatever its loop raises is raised here.

        Fewer are done where its trainer has reached its last step.
        """
        self.activate(name)
        return self._turns[name].turn(steps)

    def __enter__(self) -> "Roles":
        return self

    def __exit__(self, *failure: object) -> None:
        for name, turns in self._turns.items():
            self.activate(name)
            turns.end(failed=failure[0] is not None)


class _Ended(BaseException):
    """Unwinds the loop of a role when the run fails elsewhere; nothing of the role's may catch it."""


class _Turns(TrainerCallback):
    """One trainer's loop on a thread of its own. One thread of the run works at any time: the one whose turn it is.

    A thread, because a trainer's loop can be left and entered again in no other way without giving up what it holds.
    """

    def __init__(self, name: str, make: MakeTrainer):
        self._name, self._make = name, make
        self._mine, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._left = self._done = 0
        self._over = self._failed = self._finished = False

    def turn(self, steps: int) -> int:
        """Let the loop go on for so many steps, and wait for it."""
        self._left = steps
        if not self._finished:
            self._pass_to_loop()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return self._done

    def end(self, failed: bool) -> None:
        """Let the loop come to its end; where the run has failed, without what it does there (a checkpoint)."""
        self._over, self._failed = True, failed
        if self._thread is not None and not self._finished:
            self._pass_to_loop()
            if self._failure is not None and not failed:
                raise self._failure

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._done = state.global_step
        self._left -= 1
        if self._left <= 0 and state.global_step < state.max_steps:
            self._theirs.release()
            self._mine.acquire()
        if self._failed:
            raise _Ended
        if self._over:
            control.should_training_stop = True

    def _pass_to_loop(self) -> None:
        if self._thread is None:
            device = torch.cuda.current_device() if torch.cuda.is_available() else None
            self._thread = threading.Thread(target=self._loop, args=(device,), name=f"role {self._name}", daemon=True)
            self._thread.start()
        else:
            self._mine.release()
        self._theirs.acquire()

    def _loop(self, device: int | None) -> None:
        if device is not None:
            torch.cuda.set_device(device)  # A thread begins with the first device, whatever the rank's is.
        try:
            self._make(self).train()
        except _Ended:
            pass
        except BaseException as failure:  # noqa: BLE001 - handed to the thread that waits, which raises it
            self._failure = failure
        finally:
            self._finished = True
            self._theirs.release()
