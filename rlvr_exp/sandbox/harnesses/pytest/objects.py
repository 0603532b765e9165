"""Coding of objects that are no plain data: numbers for this side's objects, mirrors for those of the other process.

Owns the numbers of objects on either side. An object that returns to its owner is the original. In the coded forms,
`side` is the owner's: {"h": [side, number, class]} an object; {"b": [..., content]} an object with a plain type's
content, too; {"k": [side, class]} a class; {"c": [module, name, side, class]} a library's class; {"m": [side, class,
name, value]} a member of an enumeration; {"x": [class, args, attributes, cause, object]} an exception; {"r": name} a
library's function or module. Standard library only.
"""

import collections
import enum
import functools
import inspect
import itertools
import math
import sys
import types
import typing
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rlvr_exp.sandbox.harnesses.pytest import mirrors, values
from rlvr_exp.sandbox.harnesses.pytest.mirrors import Mirror, State, is_class, state_of
from rlvr_exp.sandbox.harnesses.pytest.values import Unbridgeable

_KEPT = 4096
"""Objects of the suite's classes that its mirrors in the solution's process keep alive, as the suite would."""
_TOP = {object, type, BaseException, Exception}


class Objects:
    """One end's tables.

    Args:
        side: 0 for the suite's process, 1 for the solution's.
        link: the `Peer` that sends requests of mirrors.
        own_modules: modules whose classes are a program's own, not a library's.
    """

    def __init__(self, side: int, link: Any, own_modules: frozenset[str]):
        self.side, self._link, self.own_modules = side, link, own_modules
        self._mine: dict[int, list[Any]] = {}
        self._numbers: dict[int, int] = {}
        self._mirrors: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._kinds: dict[int, type] = {}
        self._nans: dict[int, float] = {}
        self._nan_numbers: dict[int, int] = {}
        self._fresh = itertools.count(1)
        self._foreign_faults: dict[int, list[Any]] = {}
        self.handed: set[type] = set()
        """Classes of this side that crossed as such, not only as the class of an object."""
        self._kept: collections.deque[Any] = collections.deque(maxlen=_KEPT)

    # Coding

    def is_mirror(self, value: Any) -> bool:
        """The coded form of an object of the other process."""
        return issubclass(type(value), Mirror) or type(value) is mirrors.Bound or is_class(value)

    def code_nan(self, value: float) -> list[int]:
        """[side, number]: containers are equal if they hold the same NaN, so it has to return as itself."""
        number = self._nan_numbers.get(id(value))
        return [self.side, self.number_of(value)] if number is None else [1 - self.side, number]

    def nan(self, side: int, number: int) -> float:
        """The reverse. Raises ValueError."""
        if side == self.side:
            return self.mine(number)
        if number not in self._nans:
            self._nans[number] = float("nan")
            self._nan_numbers[id(self._nans[number])] = number
        return self._nans[number]

    def code_object(self, value: Any, code: Callable[[Any], Any]) -> dict[str, Any]:
        """Raises Unbridgeable."""
        if type(value) is mirrors.Bound:
            value = value.resolved()
        if isinstance(value, type):
            if (state := state_of(value)) is not None:
                return {"k": [1 - self.side, state.number]}
            if self._is_own(value):
                self.handed.add(value)
                return {"k": [self.side, self.number_of(value)]}
            return {"c": [value.__module__, value.__qualname__, self.side, self.number_of(value)]}
        if isinstance(value, enum.Enum):
            state = state_of(type(value))
            side, number = (1 - self.side, state.number) if state else (self.side, self.number_of(type(value)))
            return {"m": [side, number, value._name_, code(value._value_) if isinstance(value, enum.Flag) else None]}
        if (state := state_of(value)) is not None:
            if issubclass(type(value), BaseException) and value.__cause__ is not None:
                return {"x": [code(type(value)), [], code({}), code(value.__cause__), [1 - self.side, state.number]]}
            return {"h": [1 - self.side, state.number, 0]}
        if isinstance(value, types.TracebackType):
            return None
        if isinstance(value, types.FrameType) and self.side == 0:
            raise Unbridgeable("a frame does not leave the suite's process")
        if (name := _library_name(value)) is not None and (self.side == 0 or name in _PURE):
            return {"r": name}
        if isinstance(value, types.ModuleType) and self.side == 0 and not self._is_stub(value):
            raise Unbridgeable(f"module {value.__name__}")
        if isinstance(value, BaseException):
            home = self._foreign_faults.get(id(value))
            known = home is not None and home[1] and home[0] is value
            return {"h": [1 - self.side, home[1], 0]} if known else self._code_exception(value, code)
        kind = type(value)
        base = values.base_of(kind)
        if base is not None and not self._is_own(kind):
            return code(values.content_of(value))
        coded = [self.side, self.number_of(value), self.number_of(kind)]
        return {"h": coded} if base is None else {"b": [*coded, code(values.content_of(value))]}

    def _is_stub(self, module: types.ModuleType) -> bool:
        """Whether a program made it, and did not import it."""
        return module.__spec__ is None and module.__name__ not in (*self.own_modules, "solution", "__main__")

    def _code_exception(self, fault: BaseException, code: Callable[[Any], Any]) -> dict[str, Any]:
        kind, number = type(fault), 0
        args = () if self.side == 0 and isinstance(fault, AssertionError) else fault.args
        own = self._is_own(kind)
        if own or self.side == 0:
            number = self.number_of(fault)
        if not own and (kind.__reduce__ is not BaseException.__reduce__ or isinstance(fault, OSError)):
            args = fault.__reduce__()[1]
        cause = fault.__cause__
        attributes = {
            name: part for name, part in vars(fault).items() if type(part) in values.PLAIN or name == "__notes__"
        }
        if self.side and cause is None and fault.__context__ is not None:
            attributes["__context__"] = fault.__context__
        parts = []
        for part in args:
            try:
                parts.append(code(part))
            except Unbridgeable:
                parts.append(code(repr(part)))
        return {"x": [code(kind), parts, code(attributes), None if cause is None else code(cause), [self.side, number]]}

    def _is_own(self, kind: type) -> bool:
        """Whether a class is defined by a program of this process, and unknown to the other process."""
        if kind.__module__ in self.own_modules:
            return True
        return bool(kind.__flags__ & _HEAP_TYPE) and values.named(kind.__module__, kind.__qualname__) is not kind

    def number_of(self, value: Any) -> int:
        """The number of an object of this side. The object stays alive as long as the other side has it."""
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = next(self._fresh)
            self._mine[number] = [value, 0]
        self._mine[number][1] += 1
        return number

    def mine(self, number: int) -> Any:
        """The object of a number. Raises ValueError if there is none."""
        if number not in self._mine:
            raise ValueError(f"no object {number}")
        return self._mine[number][0]

    # Reading

    def object(self, tag: str, body: Any) -> Any:
        """Raises ValueError."""
        if tag in ("h", "b"):
            side, number, kind, *content = body
            return self.mine(number) if side == self.side else self._mirror(number, kind, content)
        if tag == "k":
            return self.mine(body[1]) if body[0] == self.side else self.kind(body[1])
        if tag == "c":
            module, name, side, number = body
            found = self.find_class(module, name)
            self._link.rules.met(found)
            return found or (self.mine(number) if side == self.side else self.kind(number))
        if tag == "m":
            side, number, name, value = body
            kind = self.mine(number) if side == self.side else self.kind(number)
            member = kind(self._link.values.value(value)) if value is not None else kind[name]
            return values.content_of(member) if values.base_of(kind) and self._link.place.refused else member
        if tag == "x":
            return self._exception(*body)
        if tag == "r" and (self.side == 1 or body in _PURE):
            module, _, path = body.partition(":")
            return functools.reduce(getattr, filter(None, path.split(".")), import_module(module))
        raise ValueError(f"unknown tag {tag}")

    def find_class(self, module: str, name: str) -> type | None:
        """A library's class under its name; None if this process has none."""
        if module.partition(".")[0] in ("pytest", "_pytest", "unittest", "hypothesis", "rlvr_exp") and not self.side:
            return None
        if self.side and module not in sys.modules and module.partition(".")[0] in sys.stdlib_module_names:
            import_module(module)
        found = values.named(module, name) if module not in self.own_modules else None
        if isinstance(found, type) and (found.__module__, found.__qualname__) != (module, name):
            found = None  # Reached through imports of a module, such as the classes of unittest.
        return found if isinstance(found, type) else _TYPES.get(name) if module == "builtins" else None

    def _exception(self, kind: Any, args: Any, attributes: Any, cause: Any, home: Any) -> BaseException:
        value = self._link.values.value
        side, number = home
        if number and side == self.side:
            fault = self.mine(number)
            if cause is not None and isinstance(fault, BaseException) and fault.__cause__ is None:
                fault.__cause__ = value(cause)
            return fault
        kind, args = value(kind), tuple(map(value, args))
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            kind = RuntimeError
        if number and is_class(kind):
            fault = self._mirrors.get(number) or self._place(BaseException.__new__(kind, *args), number)
        else:
            try:
                fault = kind(*args)
            except Exception:  # a class with its own arguments
                fault = kind.__new__(kind, *args)
            self._foreign_faults[id(fault)] = [fault, number]
        put = BaseException.__setattr__
        if is_class(kind):
            put(fault, "args", args)
        for name, part in value(attributes).items():
            if not str(name).startswith("__") or name in ("__notes__", "__context__"):
                put(fault, str(name), part)
        put(fault, "__cause__", None if cause is None else value(cause))
        return fault

    def _mirror(self, number: int, kind_number: int, content: list[Any]) -> Any:
        known = self._mirrors.get(number)
        if known is not None:
            state_of(known).times += 1
            state_of(known).met(self._link.place)
            return known
        kind = self.kind(kind_number)
        if not content:
            return self._place(object.__new__(kind), number)
        plain = self._link.values.value(content[0])
        if self._link.place.refused:
            return plain
        base = values.base_of(kind)
        return self._place(object.__new__(kind) if base is None else base.__new__(kind, plain), number)

    def _place(self, mirror: Any, number: int) -> Any:
        object.__setattr__(mirror, mirrors.STATE, State(self._link, number, self._link.place))
        if type(mirror).__weakrefoffset__:
            self._mirrors[number] = mirror
        if self.side and is_class(type(mirror)):
            self._kept.append(mirror)
        return mirror

    def kind(self, number: int) -> type:
        """The mirror of a class, described by its owner the first time."""
        if number not in self._kinds:
            described = self._link.request("describe", number)
            kind = self._kinds[number] = self._built(number, described)
            if described["later"]:  # its annotations name the class itself
                type.__setattr__(kind, "__annotations__", self._link.request("hints", number))
        return self._kinds[number]

    def adopt(self, number: int, kind: type) -> State:
        """A class of this side with an original on the other."""
        self._kinds[number] = kind
        return State(self._link, number, mirrors.Place((kind.__name__,)))

    def _built(self, number: int, described: dict[str, Any]) -> type:
        stubs = mirrors.specials_of(described["dunders"], described["unhashable"])
        if not described["own"]:
            return mirrors.foreign(
                described["name"], self.find_class(described["module"], described["qualname"]), stubs
            )
        bases = tuple(base for base in described["bases"] if isinstance(base, type))
        if described["members"] is not None:
            return mirrors.enumeration(described, bases, self._link, number)
        plain = next((base for base in bases if values.base_of(base) in _CONTENT), None)
        fault = any(issubclass(base, BaseException) for base in bases)
        kept = [base for base in bases if is_class(base) or base is plain]
        kept += [base for base in bases if issubclass(base, BaseException) and base not in kept]
        described["shadow"] = None if plain or fault else _shadow(described, bases)
        if not any(issubclass(base, Mirror) for base in kept):
            kept.insert(0, Mirror)
        return mirrors.own(described, State(self._link, number), tuple(kept), stubs, bool(plain or fault))

    def describe(self, number: int) -> dict[str, Any]:
        """The description of a class of this side, for its mirror on the other side."""
        kind = self.mine(number)
        meta = type(kind)
        names = {"name": kind.__name__, "qualname": kind.__qualname__, "module": str(kind.__module__)}
        own = self._is_own(kind)
        annotations = vars(kind).get("__annotations__")
        by_itself = isinstance(annotations, dict) and kind.__name__ in str(annotations)
        later = own and by_itself and any(isinstance(hint, str) for hint in annotations.values())
        if isinstance(annotations, dict) and not by_itself:
            annotations = hints_of(kind)
        try:
            self._link.values.code(annotations)
        except Unbridgeable:
            annotations = None
        seen = [base for base in kind.__mro__ if base is not object and (not own or base not in _PLAIN_BASES)]
        dunders = sorted({name for base in seen for name in vars(base) if name in mirrors.SPECIAL})
        members = None
        if own and issubclass(kind, enum.Enum):
            members = [(name, member._value_) for name, member in kind.__members__.items()]
            dunders = sorted({n for base in seen if self._is_own(base) for n in vars(base) if n in mirrors.SPECIAL})
        return names | {
            "doc": kind.__doc__ if isinstance(kind.__doc__, str) else None,
            "own": own,
            "bases": list(kind.__bases__) if own else [],
            "dunders": dunders,
            "methods": [(name, _sort_of(part)) for name, part in vars(kind).items() if _is_method(name, part)]
            if own
            else [],
            "unhashable": kind.__hash__ is None,
            "abstract": sorted(getattr(kind, "__abstractmethods__", ())),
            "annotations": annotations,
            "later": later,
            "checks": getattr(kind, "_is_protocol", False) or meta.__instancecheck__ is not type.__instancecheck__,
            "members": members,
            "meta": [name for base in meta.__mro__ if self._is_own(base) for name in vars(base)]
            if self._is_own(meta)
            else None,
        }

    def release(self, number: int, times: int) -> None:
        """The other side has dropped an object as often as it received it."""
        entry = self._mine.get(number)
        if entry is None:
            return
        entry[1] -= times
        if entry[1] <= 0 and not isinstance(entry[0], type):
            del self._mine[number], self._numbers[id(entry[0])]


_PURE = {f"math:{name}" for name in dir(math)} | {
    f"builtins:{name}"
    for name in "abs all any bin chr divmod hash hex len max min oct ord pow repr round sorted sum".split()
}
_PURE |= {
    f"_operator:{name}"
    for name in "add sub mul truediv floordiv mod neg pos pow eq ne lt le gt ge and_ or_ xor".split()
}
"""Functions that do nothing but return a value: the suite gets itself what the solution names."""
_HEAP_TYPE = 1 << 9
_TYPES = {kind.__name__: kind for kind in vars(types).values() if isinstance(kind, type)}
_CONTENT = (int, float, str, bytes, tuple, complex, frozenset)
_PLAIN_BASES = (*_CONTENT, BaseException, Exception)


def _is_method(name: str, part: Any) -> bool:
    kinds = (types.FunctionType, classmethod, staticmethod, property)
    return isinstance(part, kinds) and (name == "__init__" or not (name.startswith("__") and name.endswith("__")))


def _sort_of(part: Any) -> str:
    """What a method is, in a word."""
    sorts = {staticmethod: "static", classmethod: "class", property: "property"}
    return next((sort for kind, sort in sorts.items() if isinstance(part, kind)), "")


def hints_of(target: Any) -> dict[str, Any]:
    """The annotations of an object of this process. Texts, which name things of its module, are evaluated if they can be."""
    found = dict(target.__annotations__)
    if not any(isinstance(hint, str) for hint in found.values()):
        return found
    try:
        hints = typing.get_type_hints(target, include_extras=True)
    except Exception:  # whatever such a text raises
        return found
    return {name: hints.get(name, hint) for name, hint in found.items()}


def _shadow(described: dict[str, Any], bases: tuple[type, ...]) -> type | None:
    """The class that an instance claims: a subclass of the library's class that its class derives from."""
    inherited = [base for base in bases if is_class(base) and mirrors.shadow_of(base) is not None]
    real = [base for base in bases if base not in _TOP and not is_class(base)]
    real += [mirrors.shadow_of(base) for base in inherited]
    if not real:
        return None
    try:
        return type(real[0])(described["name"], (real[0],), {"__module__": described["module"]})
    except TypeError:  # a class that cannot be derived from
        return None


def _library_name(value: Any) -> str | None:
    """Module and name of a library's function or module that the other process also has."""
    if isinstance(value, types.ModuleType):
        known = value.__spec__ is not None and value.__name__.partition(".")[0] in sys.stdlib_module_names
        return value.__name__ if known else None
    module = getattr(value, "__module__", None)
    if not isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) or not isinstance(module, str):
        return None
    known = module.partition(".")[0] in sys.stdlib_module_names and values.named(module, value.__qualname__) is value
    return f"{module}:{value.__qualname__}" if known else None


def signature_of(target: Any) -> inspect.Signature:
    """Raises AttributeError if there is none."""
    try:
        return inspect.signature(target)
    except (ValueError, TypeError) as fault:
        raise AttributeError("__signature__") from fault
