"""The examination of comparisons that the solution's own methods decide.

An object that claims to equal everything passes `assert got == want`. So each such comparison is one of several, in an order
that the solution cannot know. Beside a reference, the others compare things that are unlike for the reference: other objects of
the class, a value with another content, None, a text. Without a reference they compare with None and a text, and a solution is
wrong if both are like its object. Standard library only.
"""

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from rlvr_exp.sandbox.harnesses.pytest.mirrors import compares
from rlvr_exp.sandbox.harnesses.pytest.moments import Moment, Moments
from rlvr_exp.sandbox.harnesses.pytest.values import MAX_DEPTH

_UNLIKE, _MANY, _EXAMINED, _KEPT, _BORN = "unlike ", "many", 100, 300, 4
"""So many comparisons at a spot are examined; so many objects are kept for it, and used at a time."""
_CLAIMS = {"__eq__": True, "__ne__": False, "isinstance": True}
"""What an operation answers if two things are alike."""


class Examination:
    """
    Args:
        moments: of the run.
        refuse: called with the reason if the solution is wrong.
    """

    def __init__(self, moments: Moments, refuse: Callable[[str], NoReturn]):
        self._moments, self._refuse = moments, refuse
        self.on = True
        """Whether there is one. A suite may notice it."""
        self.secret = ""
        """A text that the solution does not know, and that is the same in each run of a suite."""
        self.keeps = False
        """Whether objects of the solution that compare may live longer than the suite holds them."""
        self.runs = False
        """Whether a comparison is made that the suite does not make."""
        self.examined = 0
        """Comparisons so far that the suite does not make."""
        self._born: dict[str, Any] = {}
        self._births: Counter[str] = Counter()
        self._compared: Counter[str] = Counter()
        self._last: dict[str, Any] = {}

    def keep(self, moment: Moment, value: Any) -> None:
        """A request returned this value: an object to compare with later."""
        if self.keeps and moment.spot and compares(value) and len(self._born) < _KEPT:
            self._births[moment.spot] += 1
            self._born[f"{self._births[moment.spot]} {moment.spot}"] = value

    @contextlib.contextmanager
    def around(self, name: str, target: Any, other: Any, ask: Callable[[Any, Any], Any]) -> Iterator[None]:
        """Surround a comparison by an object's own `==` or `!=`, or by a class's own check of its instances.

        Args:
            name: `__eq__`, `__ne__` or `isinstance`.
            ask: the solution's answer for a target and another value.
        """
        spot = self._moments.spot("isinstance" if name == "isinstance" else "equality")
        if self.runs or not self.on or self._is_enough(spot):
            yield
            return
        moment = Moment(f"{self._compared[spot]} {spot}")
        draw = random.Random(f"{self.secret} {moment.spot}")
        unlike = self._unlike(moment, name, target, other, draw)
        self.examined += len(unlike)
        draw.shuffle(unlike)
        before = draw.randint(0, len(unlike))
        claimed = self._claims(name, unlike[:before], ask)
        yield
        claimed += self._claims(name, unlike[before:], ask)
        if self.keeps:
            self._last[name] = target
        if self._moments.recording:
            for key, *_ in unlike:
                if key not in claimed:
                    self._moments.record(moment, _UNLIKE + key)
        elif claimed and (self._moments.bound or len(claimed) == len(unlike)):
            what = "that the reference's is unlike" if self._moments.bound else "that nothing equals"
            self._refuse(f"by its own {name} an object of the solution is like something {what}")

    def _is_enough(self, spot: str) -> bool:
        """Count a comparison. Beside a reference a solution is examined as long as the reference was."""
        self._compared[spot] += 1
        many = Moment(f"{_MANY} {spot}")
        if self._compared[spot] <= _EXAMINED:
            return False
        if self._moments.recording:
            self._moments.record(many, _UNLIKE)
        return not self._moments.bound or self._moments.of_reference(many, _UNLIKE) is not None

    def _claims(self, name: str, pairs: list[tuple[str, Any, Any]], ask: Callable[[Any, Any], Any]) -> list[str]:
        claimed = []
        self.runs = True
        try:
            for key, target, other in pairs:
                try:
                    answer = ask(target, other)
                    if answer is not NotImplemented and bool(answer) is _CLAIMS[name]:
                        claimed.append(key)
                except Exception:  # of the solution's method: it does not claim anything
                    continue
        finally:
            self.runs = False
        return claimed

    def _unlike(
        self, moment: Moment, name: str, target: Any, other: Any, draw: random.Random
    ) -> list[tuple[str, Any, Any]]:
        """Comparisons by their keys: those whose things are unlike for the reference, or, in its own run, all."""
        if not (self._moments.bound or self._moments.recording):
            return [] if other is None else [("None", target, None), ("text", target, _UNLIKE)]
        text = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9)))
        given: dict[str, tuple[Any, Any]] = {"None": (target, None), "text": (target, text)}
        given["another"] = (target, _another(other, draw))
        if not self._moments.drawn:
            same = [(key, one) for key, one in self._born.items() if type(one) in (type(target), type(other))]
            others = [one for one in same if one[1] is not target and one[1] is not other]
            given |= {key: (target, one) for key, one in others[-_BORN if self._moments.recording else 0 :]}
            last = self._last.get(name)  # its own comparison is over: is it like the newest, too?
            given |= {} if last is None or last is target else {"last": (last, other)}
        if self._moments.bound:
            wanted = [effect.removeprefix(_UNLIKE) for effect in self._moments.effects_of_reference(moment, _UNLIKE)]
            given = {key: given[key] for key in wanted if key in given}
        return [(key, *pair) for key, pair in given.items()]


def _another(value: Any, draw: random.Random, depth: int = 0) -> Any:
    """Plain data of the same kind with another content; None of other values."""
    kind = type(value)
    if kind is bool:
        return not value
    if kind in (int, float):
        return value + draw.choice((-1, 1)) * draw.randint(1, 9)
    if kind is str:
        at, letter = draw.randint(0, len(value)), draw.choice("abcdefghijklmnopqrstuvwxyz0123456789")
        return value[:at] + letter + value[at + draw.randint(0, 1) * (value[at : at + 1] != letter) :]
    if kind in (list, tuple) and value and depth < MAX_DEPTH:
        at = draw.randrange(len(value))
        return kind([*value[:at], _another(value[at], draw, depth + 1), *value[at + 1 :]])
    if kind is dict and value and depth < MAX_DEPTH:
        chosen = draw.choice([*value])
        return value | {chosen: _another(value[chosen], draw, depth + 1)}
    return None
