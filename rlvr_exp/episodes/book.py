"""The book of mistakes: for each problem the tests that failed earlier programs, and the programs that tests caught.

As in Code-A1 (arXiv:2603.15611): a test that a program fails counts one more, a test that all pass one less; the most frequent ones
are kept. State of a training run, part of its checkpoints.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class Book:
    """
    Args:
        size: most tests, and most programs, that are kept of a problem.
    """

    def __init__(self, size: int):
        self.size = size
        self._tests: dict[str, dict[str, int]] = {}
        self._programs: dict[str, list[str]] = {}

    def tests(self, problem: str) -> tuple[str, ...]:
        return tuple(self._tests.get(problem, ()))

    def programs(self, problem: str) -> tuple[str, ...]:
        """The newest last."""
        return tuple(self._programs.get(problem, ()))

    def note(self, problem: str, failed: Mapping[str, bool], wrong: Sequence[str]) -> None:
        """Args:
        failed: of valid tests, whether some program failed them.
        wrong: programs that some valid test catches.
        """
        counts = dict(self._tests.get(problem, {}))
        for test, fails in failed.items():
            if fails or test in counts:
                counts[test] = counts.get(test, 0) + (1 if fails else -1)
        kept = sorted((one for one in counts.items() if one[1] > 0), key=lambda one: -one[1])[: self.size]
        programs = [one for one in self._programs.get(problem, []) if one not in wrong]
        self._tests[problem] = dict(kept)
        self._programs[problem] = [*programs, *wrong][-self.size :]

    def state_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"tests": self._tests, "programs": self._programs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._tests = {name: dict(each) for name, each in state["tests"].items()}
        self._programs = {name: list(each) for name, each in state["programs"].items()}

    def metrics(self) -> dict[str, float]:
        """Tests and programs in it."""
        return {
            "tests": float(sum(map(len, self._tests.values()))),
            "programs": float(sum(map(len, self._programs.values()))),
        }
