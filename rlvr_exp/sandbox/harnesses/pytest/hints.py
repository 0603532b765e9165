"""Type annotations as plain parts, and back: special forms, generic aliases, unions, type variables."""

import functools
import operator
import types
import typing
from typing import Any

_TYPED = (typing.Union, typing.Literal, typing.List, typing.Callable, typing.Tuple, typing.Any)  # noqa: UP006
_FORM_TYPES = {type(form) for form in _TYPED}
_FORMS = {id(form): name for name, form in vars(typing).items() if type(form) in _FORM_TYPES}
_ALIASES = (type(typing.List[int]), type(typing.Optional[int]))  # noqa: UP006, UP045  their types are named here


def parts_of(hint: Any) -> list[Any] | None:
    """Plain parts; None where it is no annotation. The caller codes classes among the parts."""
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


def built(parts: list[Any]) -> Any:
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
