"""An option is declared once, in its schema: the class that it configures derives from the schema and names it nowhere again."""

import dataclasses
import importlib
import inspect
from collections.abc import Iterator

import pytest

from rlvr_exp.config.load import load  # noqa: F401  (registers every schema)
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.verifier import Length, Term


def target(path: str) -> type:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def named_again(cls: type, schema: type) -> Iterator[str]:
    """Options that a class, or what it derives from besides schemas, declares as a field or takes as an argument."""
    for part in cls.__mro__:
        if not issubclass(schema, part) and part.__module__.startswith(("rlvr_exp.", __name__)):
            options = {spec.name for spec in dataclasses.fields(part)} if dataclasses.is_dataclass(part) else set()
            made = inspect.signature(vars(part)["__init__"]).parameters if _own_constructor(part) else {}
            yield from options & (inspect.get_annotations(part).keys() | made.keys())


def _own_constructor(part: type) -> bool:
    """A constructor that is written, not generated."""
    return "__init__" in vars(part) and "__dataclass_params__" not in vars(part)


@pytest.mark.parametrize("path", [path for path in SCHEMAS if not inspect.isfunction(target(path))])
def test_a_class_is_its_schema_and_names_no_option_again(path: str) -> None:
    cls, schema = target(path), SCHEMAS[path]
    assert issubclass(cls, schema), "an option is read off the object itself"
    assert [spec.name for spec in dataclasses.fields(cls)] == [spec.name for spec in dataclasses.fields(schema)]
    assert not [*named_again(cls, schema)]


def test_an_option_that_is_named_again_is_found() -> None:
    @dataclasses.dataclass
    class Declares(Length):
        weight: float = 0.5

    class Takes(Length):
        def __init__(self, scale_tokens: int):
            super().__init__(scale_tokens=scale_tokens)

    assert [*named_again(Declares, Length)] == ["weight"] and [*named_again(Takes, Length)] == ["scale_tokens"]
    assert [*named_again(Term, Length)] == []
