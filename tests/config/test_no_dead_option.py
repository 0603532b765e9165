"""Every option has a reader: found in the source by reflection over all schemas, so that new options are covered too.

An option of a class that `build` creates is one of its fields, used by the class, by one that it derives from or by
whoever holds it; any other is read off its node. Checks of values are no readers: a function that returns
Problems does not count."""

import ast
import dataclasses
import importlib
import inspect
from functools import cache
from pathlib import Path

import pytest
from test_defaults import all_schemas

import rlvr_exp
from rlvr_exp.config.help import field_help
from rlvr_exp.config.options import SCHEMAS, allowed_of, field_types, is_schema

SOURCE = Path(rlvr_exp.__file__).parent
READ_BY_NAME = {"searchpath": "rlvr_exp.config.load"}
"""Read from the file's plain values, before there is a node."""


class Reads(ast.NodeVisitor):
    """Names read as attributes, off `self` and off anything else."""

    def __init__(self) -> None:
        self.own: set[str] = set()
        self.others: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.returns is None or "InputProblem" not in ast.unparse(node.returns):
            self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
            (self.own if of_self else self.others).add(node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and isinstance(node.args[1], ast.Constant):
            self.others.add(str(node.args[1].value))
        self.generic_visit(node)


@cache
def reads(path: Path) -> Reads:
    found = Reads()
    found.visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


@cache
def read_anywhere() -> frozenset[str]:
    return frozenset().union(*(reads(path).others for path in SOURCE.rglob("*.py")))


def leaves(schema: type) -> list[dataclasses.Field]:
    kept = []
    for spec in dataclasses.fields(schema):
        if spec.name != "_target_" and not is_schema(field_types(schema)[spec.name]) and not allowed_of(spec).node:
            kept.append(spec)
    return kept


def files_of(cls: type) -> list[Path]:
    """Our files with the source of a class and its bases, but for the schemas."""
    modules = {part.__module__ for part in cls.__mro__ if part.__module__.startswith("rlvr_exp.")}
    modules = {name for name in modules if not name.startswith("rlvr_exp.config.")}
    return [Path(inspect.getfile(importlib.import_module(name))) for name in modules]


def has_reader(path: str, schema: type, spec: dataclasses.Field) -> bool:
    if path in SCHEMAS:
        module, _, name = path.rpartition(".")
        cls = getattr(importlib.import_module(module), name)
        if inspect.isfunction(cls):  # It reads its options off the node, or through the node's properties.
            return spec.name in read_anywhere() or spec.name in reads(Path(inspect.getfile(schema))).own
        by_itself = any(spec.name in reads(file).own for file in files_of(cls))
        return by_itself or spec.name in read_anywhere()
    ours = {part.__module__ for part in schema.__mro__ if part.__module__.startswith("rlvr_exp.")}
    inside = {name for module in ours for name in reads(Path(inspect.getfile(importlib.import_module(module)))).own}
    return spec.name in read_anywhere() or spec.name in inside or spec.name in READ_BY_NAME


@pytest.mark.heavy
@pytest.mark.parametrize("path", all_schemas())
def test_every_option_has_a_reader(path: str) -> None:
    schema = all_schemas()[path]
    dead = [spec.name for spec in leaves(schema) if not has_reader(path, schema, spec)]
    assert not dead, f"{path or 'the root'}: nothing reads {dead}"


@pytest.mark.heavy
def test_an_option_that_nothing_reads_is_found() -> None:
    @dataclasses.dataclass
    class Made:
        frobnicated_twice: int = 0

    assert not has_reader("made", Made, dataclasses.fields(Made)[0])
    assert field_help(all_schemas()["model"])["path"], "the schemas looked at are the real ones"
