"""Classes that stand for classes of the other process, and their instances.

A mirror has the special methods, the bases and the name of its original, and forwards operations through its
`State.link`, a `Peer`. Owns no state of an object but its number. A class statement that derives from a mirror creates
a class on both sides. Enumerations are rebuilt as real enumerations. Standard library only.
"""

import abc
import enum
import types
from collections.abc import Iterable
from typing import Any, NamedTuple

_SITES = 16
COMPARING = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__")
_BINARY = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or".split()
ARITHMETIC = (*(f"__{name}__" for name in _BINARY), *(f"__r{name}__" for name in _BINARY))
IN_PLACE = tuple(f"__i{name}__" for name in _BINARY)
_OTHERS = (
    "bool len iter next reversed getitem setitem delitem missing call enter exit await aiter anext aenter aexit int"
    " float complex index round trunc floor ceil neg pos abs invert repr str format bytes fspath length_hint get set"
    " delete set_name copy deepcopy array hash"
).split()
SPECIAL = frozenset((*COMPARING, *ARITHMETIC, *IN_PLACE, *(f"__{name}__" for name in _OTHERS)))
OF_CLASSES = frozenset(f"__{name}__" for name in "len iter reversed bool contains getitem setitem delitem".split())
"""Special methods of a metaclass that a mirror's class has, too."""
STATE, KIND, ABSTRACT, SHADOW, CHECKS = "@", "@class", "@abstract", "@shadow", "@checks"
"""Attributes for the state of mirrors and of mirrors of classes; no names of Python's."""


class Place(NamedTuple):
    """The origin of a value. `sites`: its names; `about`: the task is about objects there; `plain`: the reference
    gave plain data under one of the names; `refused`: under all names that it knows; `giver`: the object that gave it."""

    sites: tuple[str, ...] = ()
    about: bool = False
    plain: bool = False
    refused: bool = False
    giver: int = 0


ROOT = Place(("",))
"""The solution's module."""


class State:
    """The state of a mirror. `place`: its place in the suite; `times`: how often it crossed."""

    __slots__ = ("driver", "link", "number", "place", "times")

    def __init__(self, link: Any, number: int, place: Place = Place()):  # noqa: B008  a constant
        self.link, self.number, self.place, self.times = link, number, place, 1
        self.driver: Any = None

    def met(self, place: Place) -> None:
        """The suite sees it at another place, too: it has only the rights that it has under all its names. What an object's own
        methods return may be the object."""
        sites = (*self.place.sites, *(site for site in place.sites if site not in self.place.sites))[:_SITES]
        same = place.about or place.giver == self.number or not place.sites  # part of a container that both hold
        self.place = self.place._replace(sites=sites, about=self.place.about and not place.plain and same)


def state_of(mirror: Any) -> State | None:
    """The state of a mirror; None if it is no mirror."""
    kind = type(mirror)
    if issubclass(kind, (MirrorType, enum.EnumType)):
        return type.__getattribute__(mirror, "__dict__").get(KIND)
    return object.__getattribute__(mirror, STATE) if issubclass(kind, Mirror) else None


def _check_hook(name: str) -> None:
    """Libraries let an object decide comparisons; an object of the solution may not. Raises AttributeError."""
    if name.startswith(_HOOKS):
        raise AttributeError(name)


_HOOKS = ("__array_", "__torch_", "__numpy_", "__dlpack", "__cuda_", "__pandas_", "__dataframe")


class Mirror:
    """An object of the other process."""

    def __getattr__(self, name: str) -> Any:
        _check_hook(name)
        return state_of(self).link.get(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        link = state_of(self).link
        for bound in list(link.bound):
            bound.keep(self, name)
        link.set(self, name, value)

    def __delattr__(self, name: str) -> None:
        state_of(self).link.delete(self, name)

    def __dir__(self) -> list[str]:
        return state_of(self).link.names(self)

    def __repr__(self) -> str:
        return state_of(self).link.special(self, "__repr__", ())

    def __str__(self) -> str:
        return state_of(self).link.special(self, "__str__", ())

    def __format__(self, spec: str) -> str:
        return state_of(self).link.special(self, "__format__", (spec,))

    def __reduce_ex__(self, protocol: int) -> Any:
        return state_of(self).link.pickled(self)

    def __copy__(self) -> Any:
        return state_of(self).link.special(self, "__copy__", ())

    def __deepcopy__(self, memo: Any) -> Any:
        return state_of(self).link.special(self, "__deepcopy__", ({},))

    def __del__(self) -> None:
        state = state_of(self)
        state.link.dropped(state.number, state.times)


_REMOTE_DICT = {"__dict__": property(lambda self: state_of(self).link.get(self, "__dict__"))}


class MirrorType(abc.ABCMeta):
    """The class of mirrors of classes that the other process defined itself."""

    def __new__(meta, name: str, bases: tuple[Any, ...], namespace: dict[str, Any], /, **options: Any) -> Any:
        if KIND in namespace:
            kind = super().__new__(meta, name, bases, namespace)
        else:
            link = next(state_of(base).link for base in bases if is_class(base))
            # A metaclass may have moved or replaced anything.
            kept = {key: part for key, part in namespace.items() if meta is MirrorType or key.startswith("__")}
            parts = {key: _Default(key, part) if _is_value(key, part) else part for key, part in kept.items()}
            kind = super().__new__(meta, name, bases, parts)
            type.__setattr__(kind, KIND, link.derive(kind, name, bases, namespace, options))
        type.__dict__["__abstractmethods__"].__set__(kind, frozenset())  # the original refuses
        return kind

    def __init__(kind, name: str, bases: tuple[Any, ...], namespace: dict[str, Any], /, **options: Any) -> None:
        super().__init__(name, bases, namespace)

    def __call__(kind, /, *args: Any, **kwargs: Any) -> Any:
        return state_of(kind).link.call(kind, args, kwargs)

    def __getattr__(kind, name: str) -> Any:
        state = state_of(kind)
        if state is None or name.startswith("_abc_"):
            raise AttributeError(name)
        _check_hook(name)
        return state.link.get(kind, name)

    def __setattr__(kind, name: str, value: Any) -> None:
        state = state_of(kind)
        if state is None or name.startswith("_abc_") or name == "__abstractmethods__":
            type.__setattr__(kind, name, value)
            return
        if isinstance(default := type.__getattribute__(kind, "__dict__").get(name), _Default):
            default.value = value
        if isinstance(value, (Method, Property)):  # the patcher restores the previous value
            state.link.delete(kind, name)
        else:
            state.link.set(kind, name, value)

    def __delattr__(kind, name: str) -> None:
        state_of(kind).link.delete(kind, name)

    def __dir__(kind) -> list[str]:
        return state_of(kind).link.names(kind)

    def __repr__(kind) -> str:
        return f"<class '{kind.__module__}.{kind.__qualname__}'>"

    def __instancecheck__(kind, value: Any) -> bool:
        return type.__instancecheck__(kind, value) or _checked(kind, "isinstance", value)

    def __subclasscheck__(kind, other: Any) -> bool:
        return type.__subclasscheck__(kind, other) or _checked(kind, "issubclass", other)

    def __subclasses__(kind) -> list[Any]:
        return state_of(kind).link.method(kind, "__subclasses__", (), {})

    @property
    def __mro__(kind) -> tuple[Any, ...]:
        return tuple(base for base in type.mro(kind) if base is not Mirror)

    @property
    def __abstractmethods__(kind) -> frozenset[str]:
        return frozenset(type.__getattribute__(kind, "__dict__").get(ABSTRACT, ()))

    @__abstractmethods__.setter
    def __abstractmethods__(kind, names: frozenset[str]) -> None:
        type.__dict__["__abstractmethods__"].__set__(kind, names)

    @property
    def __flags__(kind) -> int:
        return type.__dict__["__flags__"].__get__(kind) | (_IS_ABSTRACT if kind.__abstractmethods__ else 0)

    @property
    def __signature__(kind) -> Any:
        return state_of(kind).link.get(kind, "__signature__")

    __hash__ = type.__hash__


_IS_ABSTRACT = 1 << 20


def is_class(value: Any) -> bool:
    """Whether it is a mirror of a class that the other process defined itself."""
    return issubclass(type(value), MirrorType)


def _meta(names: Iterable[str] | None, bases: tuple[type, ...]) -> type[MirrorType]:
    """`MirrorType`, or a subclass for classes with a metaclass of their own. `names`: of that metaclass."""
    metas = tuple(dict.fromkeys(type(base) for base in bases if is_class(base))) or (MirrorType,)
    if names is None and len(metas) == 1:
        return metas[0]
    stubs = {name: _STUBS[name] for name in OF_CLASSES.intersection(names or ())}
    return type("MirrorType", metas, stubs)


def _checked(kind: Any, what: str, value: Any) -> bool:
    """A class with its own check, such as a protocol, decides; never for a failure that is not its own."""
    if state_of(value) is None and (
        isinstance(value, BaseException) or (isinstance(value, type) and issubclass(value, BaseException))
    ):
        return False
    return type.__getattribute__(kind, "__dict__").get(CHECKS, False) and state_of(kind).link.is_kind(what, value, kind)


def compares(value: Any) -> bool:
    """Whether it is an instance of a class of the other process that has its own `==`."""
    return is_class(type(value)) and isinstance(_found(type(value), "__eq__"), Method)


def shadow_of(kind: Any) -> type | None:
    """The library's class that instances of a mirror claim to derive from."""
    return type.__getattribute__(kind, "__dict__").get(SHADOW)


class Method:
    """A function of a mirror's class: bound, it calls the object; through super(), its class.

    Args:
        real: the type of the original, which it claims to be.
    """

    def __init__(self, name: str, special: bool = False, real: type = types.FunctionType):
        self.name, self.owner, self.special, self._real = name, None, _STUBS[name] if special else None, real

    @property
    def __class__(self) -> type:
        return self._real

    @property
    def given(self) -> bool:
        """Whether the original gets the object as its first argument."""
        return self._real is types.FunctionType

    def __set_name__(self, owner: Any, name: str) -> None:
        self.owner = owner

    def __call__(self, instance: Any, /, *args: Any, **kwargs: Any) -> Any:
        return Bound(self, instance)(*args, **kwargs)  # as the interpreter calls `__get__` of a class

    def __getattr__(self, name: str) -> Any:
        owner = self.__dict__.get("owner")
        if owner is None:
            raise AttributeError(name)
        return getattr(state_of(owner).link.get(owner, self.name), name)

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        if instance is not None:
            return Bound(self, instance)
        link = state_of(self.owner).link
        if kind is None or _found(kind, self.name) is self:
            return link.get(_ready(kind, self.owner), self.name)
        inherited = link.get(self.owner, self.name)  # super() in a class method
        return types.MethodType(inherited.__func__, kind) if isinstance(inherited, types.MethodType) else inherited


class Property:
    """A property of a mirror's class."""

    __class__ = property(lambda self: property)

    def __init__(self, name: str):
        self._name = name

    def __set_name__(self, owner: Any, name: str) -> None:
        self._owner = owner

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        target = _ready(kind, self._owner) if instance is None else instance
        return state_of(self._owner).link.get(target, self._name)

    def __set__(self, instance: Any, value: Any) -> None:
        state_of(self._owner).link.set(instance, self._name, value)

    def __delete__(self, instance: Any) -> None:
        state_of(self._owner).link.delete(instance, self._name)


def _ready(kind: Any, owner: Any) -> Any:
    """The class that is asked for an attribute, or its base as long as its statement runs."""
    return owner if kind is None or state_of(kind) is None else kind


class _Default:
    """A value in a class that the suite derives: an instance may have another."""

    def __init__(self, name: str, value: Any):
        self._name, self.value = name, value

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        return self.value if instance is None else state_of(instance).link.get(instance, self._name)


class _Doc:
    """The text of a class, and of instances that have one of their own."""

    def __init__(self, text: str | None):
        self._text = text

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        return self._text if instance is None else state_of(instance).link.get(instance, "__doc__")


class Bound:
    # A bound method, mostly called at once: one request in place of two.

    __slots__ = ("__weakref__", "_instance", "_kept", "_method")

    def __init__(self, method: Method, instance: Any):
        self._method, self._instance, self._kept = method, instance, None
        state_of(method.owner).link.bound.add(self)

    def keep(self, instance: Any, name: str) -> None:
        """The attribute is about to be replaced; this remains what it was."""
        if instance is self._instance and name == self._method.name and self._kept is None:
            self._kept = self.resolved()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        method, instance = self._method, self._instance
        if self._kept is not None:
            return self._kept(*args, **kwargs)
        link = state_of(method.owner).link
        if _found(type(instance), method.name) is method:
            if method.special is not None:
                return method.special(instance, *args, **kwargs)
            return link.method(instance, method.name, args, kwargs)
        return link.method(method.owner, method.name, (instance, *args) if method.given else args, kwargs)

    def resolved(self) -> Any:
        """The bound method itself, in its own process."""
        return self._kept or state_of(self._method.owner).link.get(self._instance, self._method.name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.resolved(), name)

    @property
    def __doc__(self) -> Any:
        return self.resolved().__doc__

    @property
    def __class__(self) -> type:
        return types.MethodType

    def __eq__(self, other: Any) -> bool:
        if type(other) is not Bound:
            return NotImplemented
        return self._instance is other._instance and self._method.name == other._method.name

    def __hash__(self) -> int:
        return hash((id(self._instance), self._method.name))


def _found(kind: type, name: str) -> Any:
    for base in type.mro(kind):
        names = type.__getattribute__(base, "__dict__")
        if name in names:
            return names[name]
    return None


def _special(name: str) -> Any:
    def special(self: Any, *args: Any) -> Any:
        return state_of(self).link.special(self, name, args)

    special.__name__ = name
    return special


def _called(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    return state_of(self).link.call(self, args, kwargs)


def _exits(self: Any, kind: Any, fault: Any, trace: Any) -> Any:
    """The other side can neither swallow a failure of the suite nor end a block before an assertion."""
    if not is_failure(fault):
        left = state_of(self).link.special(self, "__exit__", (kind, fault, None))
        return left and not state_of(self).link.skips(trace)
    state_of(self).link.special(self, "__exit__", (None, None, None))
    return False


async def _async_exits(self: Any, kind: Any, fault: Any, trace: Any) -> Any:
    failed = is_failure(fault)
    given = (None, None, None) if failed else (kind, fault, None)
    left = await state_of(self).link.special(self, "__aexit__", given)
    return left and not failed and not state_of(self).link.skips(trace)


def is_failure(fault: Any) -> bool:
    """Whether it is a failed assertion, or pytest's own exception that ends a test."""
    kinds = type.mro(type(fault))
    return AssertionError in kinds or any(kind.__module__ == "_pytest.outcomes" for kind in kinds)


def _bound_as_function(self: Any, instance: Any, kind: Any = None) -> Any:
    return self if instance is None else types.MethodType(self, instance)


def _driving(name: str) -> Any:
    """A coroutine's own methods: within an event loop its task waits for the coroutine in the other process."""

    def drive(self: Any, *args: Any) -> Any:
        state = state_of(self)
        if state.driver is None:
            state.driver = state.link.driven(self)
        return getattr(state.driver, name)(*args) if state.driver else state.link.method(self, name, args, {})

    return drive


_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
_OF_FUNCTIONS = ("__doc__", "__module__")
_STUBS = {name: _special(name) for name in SPECIAL} | {
    "__call__": _called,
    "__exit__": _exits,
    "__aexit__": _async_exits,
}


def specials_of(names: list[str], unhashable: bool) -> dict[str, Any]:
    """Special methods for a mirror's namespace."""
    stubs = {name: _STUBS[name] for name in names if name in _STUBS}
    if unhashable:
        stubs["__hash__"] = None
    return stubs


def foreign(name: str, real: type | None, stubs: dict[str, Any]) -> type:
    """A class for objects of a library's class, which they claim to be."""
    names = stubs | _REMOTE_DICT | {"__doc__": property(lambda self: state_of(self).link.get(self, "__doc__"))}
    if real in _FUNCTIONS:  # whose class has them, too
        names |= {part: property(lambda self, part=part: state_of(self).link.get(self, part)) for part in _OF_FUNCTIONS}
    if real is not None:
        names["__class__"] = property(lambda self: real)
    if real is types.FunctionType:
        names["__get__"] = _bound_as_function
    if real is types.CoroutineType:
        names |= {name: _driving(name) for name in ("send", "throw", "close")}
    return type(name, (Mirror,), names)


def own(described: dict[str, Any], state: State, bases: tuple[type, ...], stubs: dict[str, Any], plain: bool) -> type:
    """A mirror of a class. `bases`: mirrors, exceptions, a plain type for its instances' content, abstract ones."""
    names: dict[str, Any] = {KIND: state, ABSTRACT: described["abstract"], CHECKS: described["checks"]}
    names |= {"__module__": described["module"], "__qualname__": described["qualname"]}
    names["__doc__"] = described["doc"] if plain else _Doc(described["doc"])
    names |= ({} if plain else _REMOTE_DICT) | {
        name: stub and Method(name, special=True) for name, stub in stubs.items()
    }
    kinds = {"": types.FunctionType, "static": staticmethod, "class": classmethod}
    for name, real in described["methods"]:
        if name not in names and not _is_special(name):
            names[name] = (
                Property(name) if real == "property" else Method(name, real=kinds.get(real, types.FunctionType))
            )
    if described["annotations"] is not None:
        names["__annotations__"] = described["annotations"]
    if described["shadow"] is not None:
        names |= {"__class__": property(lambda self: described["shadow"]), SHADOW: described["shadow"]}
    return _meta(described["meta"], bases)(described["name"], bases, names)


def enumeration(described: dict[str, Any], bases: tuple[type, ...], link: Any, number: int) -> type:
    """A real enumeration with the same members; other attributes are requested from its original. Raises ValueError."""
    if not bases or not issubclass(bases[-1], enum.Enum) or any(_is_special(name) for name, _ in described["members"]):
        raise ValueError("no enumeration")
    meta = type(bases[-1])
    names = meta.__prepare__(described["name"], bases)
    names["__module__"], names["__qualname__"] = described["module"], described["qualname"]
    for name, value in described["members"]:
        names[name] = value
    kind = meta(described["name"], bases, names)
    type.__setattr__(kind, KIND, State(link, number))

    def of_member(member: enum.Enum, name: str) -> Any:
        if name.startswith("_") and name.endswith("_"):
            raise AttributeError(name)
        return link.get(member, name)

    type.__setattr__(kind, "__getattr__", of_member)
    for name in described["dunders"]:
        if name in _STUBS and name not in ("__hash__", "__reduce_ex__"):
            type.__setattr__(kind, name, lambda self, *args, name=name: link.special(self, name, args))
    for name, real in described["methods"]:
        if real != "property" and not _is_special(name) and name not in kind.__members__:
            method = Method(name)
            method.owner = kind
            type.__setattr__(kind, name, method)
    return kind


def _is_value(name: str, part: Any) -> bool:
    return not name.startswith("__") and type(part) in _UNCHANGING


_UNCHANGING = (int, float, complex, str, bytes, bool, tuple, frozenset, type(None))


def _is_special(name: Any) -> bool:
    return type(name) is not str or (name.startswith("__") and name != "__init__") or name == "mro"
