"""Several roles trained in turn in a run: each with its own trainer, on adapters of a shared model or on separate models.

A role's trainer runs its ordinary loop from its first step to its last, so that optimizer, schedule, step count and
callbacks stay where they are; between turns that loop pauses where a single trainer would write its checkpoint: after the
step's row, before the next step begins. While a role trains, the adapters of the other roles take no gradient and belong
to no running optimizer: they stay bit for bit unchanged. Each role has its own random number generators, so that no role
affects the random numbers of another.

Each role has its own optimizer, and under DeepSpeed its own engine over the shared model. A single engine with a parameter
group for each role would not work: ZeRO steps all its groups at once, and Adam moves parameters whose gradient is zero for
as long as their moments are not.
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
"""Builds a role's trainer, with the given callback as the last of its callbacks."""


class RoleScheduler:
    """Trains roles, one at a time. A role whose model has adapters trains the adapter of its name.

    Used as a context: at its end every role's loop ends as if its last step were complete.

    Args:
        models: by role; several roles may share a model.
        seed: together with a role's name the seed of its random numbers.
    """

    def __init__(self, models: Mapping[str, nn.Module], seed: int = 0):
        self._models, self._seed = models, seed
        self._turns: dict[str, _Turns] = {}

    def add(self, name: str, make: MakeTrainer, resume: str | None = None) -> None:
        """Add a role that learns. `make` is called in its first turn, with its adapter active.

        Args:
            resume: the folder of training state that its loop resumes from; None: from the beginning.

        Raises:
            ValueError: there is no such model or adapter, or the role was added already.
        """
        adapters = getattr(self._models.get(name), "peft_config", {name: None})
        if name not in self._models or name not in adapters:
            there = ", ".join(self._models if name not in self._models else adapters)
            raise ValueError(f"RoleScheduler.add: no model or adapter named {name!r}; there are {there}")
        if name in self._turns:
            raise ValueError(f"RoleScheduler.add: {name!r} was added already")
        self._turns[name] = _Turns(name, make, resume, RngState(derive(self._seed, "role", name)))

    def activate(self, name: str) -> None:
        """Switch to a role's adapter; only it takes gradients. Nothing to do for a role with its own model."""
        if isinstance(self._models[name], PeftModel):
            self._models[name].set_adapter(name)

    def train(self, name: str, steps: int) -> int:
        """Run further update steps of a role; returns the total of its steps. Errors of its loop are raised here.

        Runs fewer steps where its trainer reaches its last step.
        """
        self.activate(name)
        return self._turns[name].turn(steps)

    @contextmanager
    def numbers(self, name: str) -> Iterator[None]:
        """Inside the block the role's random numbers replace the process's, as needed to save its trainer's state."""
        with self._turns[name].numbers.drawn_from():
            yield

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        for name, turns in self._turns.items():
            self.activate(name)
            turns.end(failed=failure[0] is not None)


class RngState:
    """A stream of random numbers: the state of the global generators while its owner runs."""

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
    """Unwinds the loop of a role when the run fails elsewhere; the role's code must not catch it."""


class _Turns(TrainerCallback):
    """A trainer's loop on its own thread. Only one thread of the run works at any time: the thread whose turn it is.

    A thread, because there is no other way to leave and re-enter a trainer's loop without losing its state.
    """

    def __init__(self, name: str, make: MakeTrainer, resume: str | None, numbers: RngState):
        self._name, self._make, self._resume, self.numbers = name, make, resume, numbers
        self._mine, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._left = self._done = 0
        self._over = self._failed = self._finished = False

    def turn(self, steps: int) -> int:
        """Let the loop run for so many steps, and wait for it."""
        self._left = steps
        if not self._finished:
            self._pass_to_loop()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return self._done

    def end(self, failed: bool) -> None:
        """Let the loop end; where the run has failed, without the work at its end."""
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
        """End of a turn: the step is complete, including its row."""
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
        except BaseException as failure:  # Handed to the thread that waits, which raises it.
            self._failure = failure
        finally:
            self._finished = True
            self._theirs.release()
