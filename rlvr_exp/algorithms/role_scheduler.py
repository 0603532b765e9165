"""Several roles trained in turn in one run: each a trainer of its own, on adapters of one model or on models of their own.

A role's trainer runs its ordinary loop from its first step to its last, so that optimizer, schedule, step count and
callbacks stay where they are; between turns that loop stands still where a trainer alone would write its checkpoint:
after the step's row, before anything of the next step. While one role learns, the adapters of the others take no
gradient and belong to no running optimizer: they stay bit for bit as they were. Each role draws from random numbers of
its own, so that what one does moves nothing of another's.

Each role has an optimizer of its own, and under DeepSpeed an engine of its own over the one model. One engine with a
parameter group for each role would not do: ZeRO steps all its groups at once, and Adam moves parameters whose gradient
is zero for as long as their moments are not.
"""

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from peft import PeftModel
from torch import nn
from transformers import Trainer, TrainerCallback

from rlvr_exp.core.seeds import derive

MakeTrainer = Callable[[TrainerCallback], Trainer]
"""Makes a role's trainer, with the callback that is given among its callbacks, the last of them."""


class RoleScheduler:
    """Trains roles, one at a time. A role whose model has adapters has the one of its own name.

    Used as a context: at its end every role's loop ends as if its last step were done.

    Args:
        models: by role; of several roles it may be one and the same.
        seed: of each role's random numbers, with its name.
    """

    def __init__(self, models: Mapping[str, nn.Module], seed: int = 0):
        self._models, self._seed = models, seed
        self._turns: dict[str, _Turns] = {}

    def add(self, name: str, make: MakeTrainer, resume: str | None = None) -> None:
        """A role that learns. `make` is called in its first turn, with its adapter active.

        Args:
            resume: the folder of training state that its loop goes on from; None: it begins.

        Raises:
            ValueError: there is no such model or adapter, or the role is there already.
        """
        adapters = getattr(self._models.get(name), "peft_config", {name: None})
        if name not in self._models or name not in adapters:
            there = ", ".join(self._models if name not in self._models else adapters)
            raise ValueError(f"RoleScheduler.add: nothing that learns as {name!r}; there are {there}")
        if name in self._turns:
            raise ValueError(f"RoleScheduler.add: {name!r} is there already")
        self._turns[name] = _Turns(name, make, resume, RngState(derive(self._seed, "role", name)))

    def activate(self, name: str) -> None:
        """Answer with a role's adapter; it alone takes gradients. Nothing to do for a model of its own."""
        if isinstance(self._models[name], PeftModel):
            self._models[name].set_adapter(name)

    def train(self, name: str, steps: int) -> int:
        """Do further update steps of a role; returns all that it has done. Whatever its loop raises is raised here.

        Fewer are done where its trainer has reached its last step.
        """
        self.activate(name)
        return self._turns[name].turn(steps)

    @contextmanager
    def numbers(self, name: str) -> Iterator[None]:
        """The role's random numbers in the place of the process's, as its trainer's state is written with."""
        with self._turns[name].numbers.drawn_from():
            yield

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        for name, turns in self._turns.items():
            self.activate(name)
            turns.end(failed=failure[0] is not None)


class RngState:
    """One stream of random numbers: the state of the global generators while its owner works."""

    def __init__(self, seed: int):
        self._seed, self._state = seed, None

    @contextmanager
    def drawn_from(self) -> Iterator[None]:
        before = _state()
        if self._state is None:
            _begin(self._seed)
        else:
            _put(self._state)
        try:
            yield
        finally:
            self._state = _state()
            _put(before)


def _state() -> tuple[Any, ...]:
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return random.getstate(), np.random.get_state(), torch.get_rng_state(), devices


def _put(state: tuple[Any, ...]) -> None:
    random.setstate(state[0])
    np.random.set_state(state[1])
    torch.set_rng_state(state[2])
    if state[3]:
        torch.cuda.set_rng_state_all(state[3])


def _begin(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


class _Ended(BaseException):
    """Unwinds the loop of a role when the run fails elsewhere; nothing of the role's may catch it."""


class _Turns(TrainerCallback):
    """One trainer's loop on a thread of its own. One thread of the run works at any time: the one whose turn it is.

    A thread, because a trainer's loop can be left and entered again in no other way without giving up what it holds.
    """

    def __init__(self, name: str, make: MakeTrainer, resume: str | None, numbers: RngState):
        self._name, self._make, self._resume, self.numbers = name, make, resume, numbers
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
        """Let the loop come to its end; where the run has failed, without what it does there."""
        self._over, self._failed = True, failed
        if self._thread is not None and not self._finished:
            self._pass_to_loop()
            if self._failure is not None and not failed:
                raise self._failure

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._done = state.global_step
        self._left -= 1
        control.should_save |= self._left <= 0

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The turn is over: everything of the step is done, its row included."""
        if self._left <= 0:
            self._theirs.release()
            self._mine.acquire()
        if self._failed:
            raise _Ended
        if self._over:
            control.should_training_stop = True

    def _pass_to_loop(self) -> None:
        with self.numbers.drawn_from():
            if self._thread is None:
                device = torch.cuda.current_device() if torch.cuda.is_available() else None
                name = f"role {self._name}"
                self._thread = threading.Thread(target=self._loop, args=(device,), name=name, daemon=True)
                self._thread.start()
            else:
                self._mine.release()
            self._theirs.acquire()

    def _loop(self, device: int | None) -> None:
        if device is not None:
            torch.cuda.set_device(device)  # A thread begins with the first device, whatever the rank's is.
        try:
            self._make(self).train(resume_from_checkpoint=self._resume)
        except _Ended:
            pass
        except BaseException as failure:  # noqa: BLE001 - handed to the thread that waits, which raises it
            self._failure = failure
        finally:
            self._finished = True
            self._theirs.release()
