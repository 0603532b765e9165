"""The coding of data that crosses the bridge: exact types of the interpreter and of array packages.

`Values.code` turns a value into JSON, `Values.value` is the reverse. Values that are no plain data are left to
`Objects`: a handle, a class, an exception. Reading builds data and nothing else; the reader decides which classes a name
may stand for. numpy, torch and pandas are touched only if a value of theirs crosses. Standard library
and pytest only.
"""

import array
import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import inspect
import ipaddress
import itertools
import math
import operator
import pathlib
import re
import sys
import time
import types
import typing
import uuid
import zoneinfo
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from _pytest._py.path import LocalPath

from rlvr_exp.sandbox import wire

MAX_DEPTH = 100
_BIG = 1 << 62
_SURROGATES = re.compile("[\ud800-\udfff]")
_CODE, _LINE = re.compile(r"[(=@;\[{]"), 6
"""Characters of code that does something, and the shortest line of it."""
_DATE, _TIME = ("year", "month", "day"), ("hour", "minute", "second", "microsecond", "tzinfo")


class Unbridgeable(TypeError):
    """A value that cannot cross: a frame, a module of the suite, endless nesting."""


def _fields(*names: str) -> Callable[[Any], list[Any]]:
    return lambda value: [getattr(value, name) for name in names]


def _text(value: Any) -> list[Any]:
    return [str(value)]


_PARTS: dict[type, tuple[Callable[[Any], list[Any]], Callable[..., Any]]] = {
    tuple: (list, lambda *items: items),
    set: (list, lambda *items: set(items)),
    frozenset: (list, lambda *items: frozenset(items)),
    bytes: (lambda v: [base64.b85encode(v).decode()], base64.b85decode),
    bytearray: (lambda v: [bytes(v)], bytearray),
    memoryview: (lambda v: [v.tobytes()], memoryview),
    complex: (_fields("real", "imag"), complex),
    range: (_fields("start", "stop", "step"), range),
    slice: (_fields("start", "stop", "step"), slice),
    collections.deque: (lambda v: [list(v), v.maxlen], collections.deque),
    collections.OrderedDict: (lambda v: [list(v.items())], collections.OrderedDict),
    collections.Counter: (lambda v: [dict(v)], collections.Counter),
    collections.defaultdict: (lambda v: [v.default_factory, dict(v)], collections.defaultdict),
    type({}.keys()): (lambda v: [list(v)], lambda keys: dict.fromkeys(keys).keys()),
    type({}.values()): (lambda v: [list(v)], lambda items: dict(enumerate(items)).values()),
    type({}.items()): (lambda v: [list(v)], lambda items: dict(items).items()),
    types.MappingProxyType: (lambda v: [dict(v)], types.MappingProxyType),
    types.SimpleNamespace: (lambda v: [vars(v)], lambda names: _namespace(names)),
    array.array: (lambda v: [v.typecode, v.tobytes()], array.array),
    decimal.Decimal: (_text, decimal.Decimal),
    fractions.Fraction: (_fields("numerator", "denominator"), fractions.Fraction),
    uuid.UUID: (_text, uuid.UUID),
    zoneinfo.ZoneInfo: (_text, zoneinfo.ZoneInfo),
    datetime.date: (_fields(*_DATE), datetime.date),
    datetime.time: (_fields(*_TIME, "fold"), lambda *parts: datetime.time(*parts[:-1], fold=parts[-1])),
    datetime.datetime: (
        _fields(*_DATE, *_TIME, "fold"),
        lambda *parts: datetime.datetime(*parts[:-1], fold=parts[-1]),
    ),
    datetime.timedelta: (_fields("days", "seconds", "microseconds"), datetime.timedelta),
    datetime.timezone: (lambda v: list(v.__getinitargs__()), datetime.timezone),
    time.struct_time: (lambda v: [tuple(v)], time.struct_time),
    re.Pattern: (_fields("pattern", "flags"), re.compile),
    inspect.Parameter: (
        lambda v: [v.name, int(v.kind), v.default, v.annotation],
        lambda name, kind, default, hint: inspect.Parameter(name, kind, default=default, annotation=hint),
    ),
    inspect.Signature: (
        lambda v: [list(v.parameters.values()), v.return_annotation],
        lambda parameters, hint: inspect.Signature(parameters, return_annotation=hint),
    ),
}
_PATHS = (pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath, LocalPath)
_PARTS |= {kind: (_text, kind) for kind in _PATHS}
_PARTS |= {kind: (_text, kind) for name, kind in vars(ipaddress).items() if re.match(r"IPv\d(Add|Net|Int)", name)}
_HOLDERS = {collections.deque, type({}.keys()), type({}.values()), type({}.items()), types.MappingProxyType, slice}
_HOLDERS |= {types.SimpleNamespace, inspect.Parameter, inspect.Signature}
_NAMES = {f"{kind.__module__}.{kind.__qualname__}": build for kind, (_, build) in _PARTS.items()}
_SINGLE = {
    id(single): (single, name)
    for name, single in (
        ("...", ...),
        ("NotImplemented", NotImplemented),
        ("MISSING", dataclasses.MISSING),
        ("KW_ONLY", dataclasses.KW_ONLY),
        *((kind.name, kind) for kind in vars(dataclasses).values() if type(kind) is dataclasses._FIELD_BASE),
    )
}
_SINGLES = {name: single for single, name in _SINGLE.values()}
_BASES = (*wire.BASES, (complex, complex.__complex__), (bytearray, bytearray.copy))
CHANGING = (list, dict, set, bytearray, collections.deque, collections.OrderedDict, collections.Counter)
CHANGING += (collections.defaultdict, array.array, types.SimpleNamespace)
"""Containers that keep their identity on the other side."""
PLAIN = (*_PARTS, dict, list, str, int, float, bool, type(None))


def base_of(kind: type) -> type | None:
    """The plain type that a class derives from."""
    return next((base for base, _ in _BASES if issubclass(kind, base)), None)


def content_of(value: Any) -> Any:
    """The content of an instance of such a class, by the plain type's own methods."""
    return next(content(value) for base, content in _BASES if issubclass(type(value), base))


def inside(value: Any) -> Iterable[Any]:
    """The content of a container of plain data, or of a class that derives from one."""
    if isinstance(value, dict):
        makes = value.default_factory if isinstance(value, collections.defaultdict) else None
        own = [makes] if isinstance(makes, type) and makes not in PLAIN else []
        return itertools.chain(own, value, value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    return _PARTS[type(value)][0](value) if type(value) in _HOLDERS else ()


class Values:
    """Both directions of the coding, for one end of the bridge."""

    def __init__(self, objects: Any):
        self._objects = objects
        self.received: dict[str, None] | None = None
        """Lines of texts that arrived and that could be code; None: not kept."""

    def _keep(self, text: str) -> None:
        if self.received is not None and _CODE.search(text):
            lines = [line.strip() for line in text.splitlines()]
            self.received |= dict.fromkeys(line for line in lines if len(line) >= _LINE and _CODE.search(line))

    def code(self, value: Any, depth: int = 0) -> Any:
        """Raises Unbridgeable."""
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return value if _SURROGATES.search(value) is None else {"u": [ord(character) for character in value]}
        if kind is int:
            return value if -_BIG < value < _BIG else {"i": hex(value)}
        if kind is float:
            if math.isfinite(value):
                return value
            return {"n": self._objects.code_nan(value)} if math.isnan(value) else {"f": repr(value)}
        if depth >= MAX_DEPTH:
            raise Unbridgeable(f"nested deeper than {MAX_DEPTH}")
        if kind is list:
            return [self.code(item, depth + 1) for item in value]
        if kind is dict:
            return {"d": [[self.code(key, depth + 1), self.code(item, depth + 1)] for key, item in value.items()]}

        def code(part: Any) -> Any:
            return self.code(part, depth + 1)

        if kind in _PARTS and (kind is not types.SimpleNamespace or is_data(vars(value))):
            return {"v": [f"{kind.__module__}.{kind.__qualname__}", *map(code, _PARTS[kind][0](value))]}
        if self._objects.is_mirror(value):
            return self._objects.code_object(value, code)
        if id(value) in _SINGLE and _SINGLE[id(value)][0] is value:
            return {"s": _SINGLE[id(value)][1]}
        if kind is dataclasses.Field:
            return {"F": [[name, code(getattr(value, name))] for name in kind.__slots__ if name != "__weakref__"]}
        if isinstance(value, enum.Enum) and kind.__module__.partition(".")[0] in sys.stdlib_module_names:
            return {"e": [kind.__module__, kind.__qualname__, value._name_]}
        if (parts := _parts_of_array(value)) is not None:
            return {"a": [code(part) for part in parts]}
        if (parts := _parts_of_hint(value)) is not None:
            return {"y": [code(part) for part in parts]}
        return self._objects.code_object(value, code)

    def value(self, coded: Any) -> Any:
        """Raises ValueError, TypeError and whatever a constructor of plain data raises."""
        kind = type(coded)
        if kind is list:
            return [self.value(item) for item in coded]
        if kind is not dict:
            if kind is str:
                self._keep(coded)
            return coded
        ((tag, body),) = coded.items()
        if tag == "d":
            return {self.value(key): self.value(item) for key, item in body}
        if tag == "v":
            built = _NAMES[body[0]](*(self.value(part) for part in body[1:]))
            if type(built) is bytes:
                self._keep(built.decode("latin-1"))
            return built
        if tag == "u":
            return "".join(map(chr, body))
        if tag == "i":
            return int(body, 16)
        if tag == "f":
            return float(body)
        if tag == "n":
            return self._objects.nan(*body)
        if tag == "s":
            return _SINGLES[body]
        if tag == "F":
            rebuilt = dataclasses.field()
            for name, part in body:
                if name in dataclasses.Field.__slots__:
                    setattr(rebuilt, name, self.value(part))
            return rebuilt
        if tag == "e":
            kind = self._objects.find_class(body[0], body[1])
            if kind is None or not issubclass(kind, enum.Enum):
                raise ValueError(f"no enumeration {body[:2]}")
            return kind[body[2]]
        if tag == "a":
            return _built_array([self.value(part) for part in body])
        if tag == "y":
            return _built_hint([self.value(part) for part in body])
        return self._objects.object(tag, body)


def is_data(names: dict[str, Any]) -> bool:
    """Whether attributes are data, and none could be called."""
    return all(type(part) in PLAIN for part in names.values())


def _namespace(names: dict[str, Any]) -> types.SimpleNamespace:
    if not is_data(names):
        raise ValueError("a namespace of objects")
    return types.SimpleNamespace(**names)


def _parts_of_array(value: Any) -> list[Any] | None:
    """Plain parts; None for a value that is no array."""
    package = type(value).__module__.partition(".")[0]
    if package == "numpy":
        return _of_numpy(value, sys.modules["numpy"])
    if package == "torch" and (torch := sys.modules.get("torch")) is not None:
        return _of_torch(value, torch)
    if package == "pandas" and (pandas := sys.modules.get("pandas")) is not None:
        return _of_pandas(value, pandas)
    if package == "sympy" and (sympy := sys.modules.get("sympy")) is not None:
        return _of_sympy(value, sympy)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "ndarray") and isinstance(value, numpy.ndarray):
        return _of_numpy(value, numpy)
    return None


def _built_array(parts: list[Any]) -> Any:
    """The reverse. Raises ValueError, TypeError, ImportError."""
    kind, *rest = parts
    numpy = import_module("numpy")
    if kind == "array":
        dtype, shape, data = rest
        if type(data) is list:
            rebuilt = numpy.empty(len(data), object)
            rebuilt[:] = data
            return rebuilt.reshape(shape)
        return numpy.frombuffer(bytearray(data), _dtype(numpy, dtype)).reshape(shape)
    if kind == "scalar":
        return numpy.frombuffer(rest[1], _dtype(numpy, rest[0]))[0]
    if kind == "dtype":
        return _dtype(numpy, rest[0])
    if kind == "tensor":
        torch = import_module("torch")
        dtype = _torch_dtype(torch, rest[1])
        return torch.from_numpy(rest[0]).to(dtype).requires_grad_(rest[2])
    if kind == "torch.dtype":
        return _torch_dtype(import_module("torch"), rest[0])
    if kind.startswith("sympy"):
        return _built_sympy(kind, rest, import_module("sympy"))
    pandas = import_module("pandas")
    if kind == "timestamp":
        return pandas.Timestamp(rest[0])
    if kind == "index":
        values, names, dtype = rest
        if len(names) > 1:
            return pandas.MultiIndex.from_tuples(values, names=names)
        return pandas.Index(values, name=names[0], dtype=dtype)
    if kind == "series":
        return pandas.Series(rest[0], index=rest[1], name=rest[2], dtype=rest[3])
    if kind == "frame":
        columns = [pandas.Series(values, index=rest[1], dtype=dtype) for values, dtype in rest[0]]
        rebuilt = pandas.DataFrame(dict(enumerate(columns)), index=rest[1])
        rebuilt.columns = rest[2]
        return rebuilt
    raise ValueError(f"no array of kind {kind}")


def _of_numpy(value: Any, numpy: Any) -> list[Any] | None:
    if isinstance(value, numpy.dtype):
        return ["dtype", value.str if value.names is None else value.descr]
    if not isinstance(value, (numpy.ndarray, numpy.generic)) or isinstance(value, numpy.ma.MaskedArray):
        return None
    plain = numpy.asarray(value)
    if plain.dtype.hasobject:
        return ["array", None, list(plain.shape), list(plain.ravel())]
    dtype = plain.dtype.str if plain.dtype.names is None else plain.dtype.descr
    if isinstance(value, numpy.generic):
        return ["scalar", dtype, plain.tobytes()]
    return ["array", dtype, list(plain.shape), plain.tobytes()]


def _dtype(numpy: Any, named: Any) -> Any:
    rebuilt = numpy.dtype(named)
    if rebuilt.hasobject:
        raise ValueError("an array of objects as bytes")
    return rebuilt


def _of_torch(value: Any, torch: Any) -> list[Any] | None:
    if isinstance(value, torch.dtype):
        return ["torch.dtype", str(value).removeprefix("torch.")]
    if type(value) is not torch.Tensor:
        return None
    plain = value.detach().cpu()
    wide = plain.float() if plain.dtype in (torch.bfloat16, torch.float16) else plain
    return ["tensor", wide.contiguous().numpy(), str(value.dtype).removeprefix("torch."), value.requires_grad]


def _torch_dtype(torch: Any, name: str) -> Any:
    dtype = getattr(torch, name)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"torch.{name} is no dtype")
    return dtype


def _of_pandas(value: Any, pandas: Any) -> list[Any] | None:
    if isinstance(value, pandas.Timestamp):
        return ["timestamp", value.isoformat()]
    if isinstance(value, pandas.Index):
        return ["index", list(value), list(value.names), str(value.dtype)]
    if type(value) is pandas.Series:
        return ["series", list(value), value.index, value.name, str(value.dtype)]
    if type(value) is pandas.DataFrame:
        columns = [(list(value.iloc[:, at]), str(value.dtypes.iloc[at])) for at in range(value.shape[1])]
        return ["frame", columns, value.index, value.columns]
    return None


def _of_sympy(value: Any, sympy: Any) -> list[Any] | None:
    """Parts of an expression or a matrix: its class and its arguments, as SymPy itself rebuilds one."""
    kind = type(value)
    if isinstance(value, sympy.matrices.MatrixBase) and not isinstance(value, sympy.Basic):
        return ["sympy matrix", kind.__name__, *value.shape, list(value)]
    if not isinstance(value, sympy.Basic):
        return None
    if value is getattr(sympy.S, kind.__name__, None):
        return ["sympy single", kind.__name__]
    if isinstance(value, sympy.Symbol):
        number = value.dummy_index if isinstance(value, sympy.Dummy) else None
        return ["sympy symbol", kind.__name__, value.name, value._assumptions_orig, number]
    if isinstance(value, (sympy.Rational, sympy.core.symbol.Str)):
        parts = [value.name] if isinstance(value, sympy.core.symbol.Str) else [value.p, value.q]
        return ["sympy number", *parts]
    if isinstance(value, sympy.Float):
        return ["sympy float", *map(int, value._mpf_), value._prec]
    if isinstance(value, sympy.core.function.AppliedUndef):
        return ["sympy applied", kind.__name__, list(value.args)]
    if named(kind.__module__, kind.__qualname__) is not kind:
        return None
    more = [str(value.get_domain())] if isinstance(value, sympy.Poly) else []
    return ["sympy", kind.__module__, kind.__qualname__, list(value.args), *more]


def _built_sympy(kind: str, parts: list[Any], sympy: Any) -> Any:
    """The reverse. Texts are never parsed: SymPy evaluates them. Raises ValueError, TypeError, AttributeError."""
    if kind == "sympy matrix":
        name, rows, columns, items = parts
        if name not in ("MutableDenseMatrix", "MutableSparseMatrix") or not all(
            _is_sympy(item, sympy) for item in items
        ):
            raise ValueError("no matrix")
        return getattr(sympy, name)(rows, columns, items)
    if kind == "sympy single":
        return _checked_sympy(getattr(sympy.S, parts[0]), sympy)
    if kind == "sympy symbol":
        name, text, assumptions, number = parts
        more = {} if number is None else {"dummy_index": int(number)}
        given = {str(key): None if on is None else bool(on) for key, on in assumptions.items()}
        return {"Symbol": sympy.Symbol, "Dummy": sympy.Dummy, "Wild": sympy.Wild}[name](str(text), **given, **more)
    if kind == "sympy number":
        return sympy.core.symbol.Str(str(parts[0])) if len(parts) == 1 else sympy.Rational(int(parts[0]), int(parts[1]))
    if kind == "sympy float":
        *content, precision = map(int, parts)
        return sympy.Float._new(tuple(content), precision)
    if not all(_is_sympy(item, sympy) for item in parts[1 if kind == "sympy applied" else 2]):
        raise ValueError("an expression of other things")
    if kind == "sympy applied":
        return sympy.Function(str(parts[0]))(*parts[1])
    module, name, args, *more = parts
    found = named(module, name)
    if not (str(module).startswith("sympy.") and isinstance(found, type) and issubclass(found, sympy.Basic)):
        raise ValueError(f"no class {module}.{name} of SymPy")
    if more:
        return sympy.Poly(*args, domain=more[0]) if more[0] in ("ZZ", "QQ", "RR", "EX") else sympy.Poly(*args)
    return _checked_sympy(found(*args), sympy)


def _is_sympy(value: Any, sympy: Any) -> bool:
    return isinstance(value, sympy.Basic)


def _checked_sympy(value: Any, sympy: Any) -> Any:
    if not _is_sympy(value, sympy):
        raise ValueError("no expression")
    return value


def named(module: str, path: str) -> Any:
    """What a loaded module has under a dotted name; None if it has nothing."""
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


_TYPED = (typing.Union, typing.Literal, typing.List, typing.Callable, typing.Tuple, typing.Any)  # noqa: UP006
_FORM_TYPES = {type(form) for form in _TYPED}
_FORMS = {id(form): name for name, form in vars(typing).items() if type(form) in _FORM_TYPES}
_ALIASES = (type(typing.List[int]), type(typing.Optional[int]))  # noqa: UP006, UP045  their types are named here


def _parts_of_hint(hint: Any) -> list[Any] | None:
    """Plain parts; None for a value that is no annotation. The caller codes classes among the parts."""
    if id(hint) in _FORMS:
        return ["form", _FORMS[id(hint)]]
    if type(hint).__module__ not in ("typing", "types"):
        return None
    if isinstance(hint, types.GenericAlias):
        return ["generic", hint.__origin__, list(hint.__args__)]
    if isinstance(hint, types.UnionType):
        return ["union", list(hint.__args__)]
    if isinstance(hint, typing.TypeVar):
        return ["variable", hint.__name__]
    if isinstance(hint, typing.ForwardRef):
        return ["forward", hint.__forward_arg__]
    if isinstance(hint, _ALIASES):
        return _of_alias(hint)
    return None


def _of_alias(hint: Any) -> list[Any]:
    origin = hint.__origin__
    name = hint._name or getattr(origin, "_name", None)
    if origin is typing.Union:
        name = "Union"
    args = list(hint.__args__)
    if name == "Callable":
        args = [args[:-1] if args[:-1] != [...] else ..., args[-1]]
    return ["alias", name if name is not None and hasattr(typing, name) else origin, args]


def _built_hint(parts: list[Any]) -> Any:
    """The reverse. Raises ValueError, TypeError."""
    kind, first, *rest = parts
    if kind == "form":
        return _form(first)
    if kind == "generic":
        return types.GenericAlias(first, tuple(rest[0]))
    if kind == "union":
        return functools.reduce(operator.or_, first)
    if kind == "variable":
        return typing.TypeVar(str(first))
    if kind == "forward":
        return typing.ForwardRef(str(first))
    if kind == "alias":
        args = rest[0]
        if type(first) is not str:  # a class of this side, whose own indexing would recurse
            return types.GenericAlias(first, tuple(args))
        return _form(first)[tuple(args) if len(args) != 1 else args[0]]
    raise ValueError(f"no annotation of kind {kind}")


def _form(name: str) -> Any:
    form = getattr(typing, name)
    if id(form) not in _FORMS:
        raise ValueError(f"typing.{name} is no annotation")
    return form
