"""Every default, compared with the reviewed values: a changed default is a visible difference in defaults.yaml.

`python tests/config/test_defaults.py` rewrites the file.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlvr_exp.config.help import field_help
from rlvr_exp.config.options import SCHEMAS, allowed_of, below_schema, default_of, field_types, is_schema
from rlvr_exp.config.schema import STAGES, Config
from rlvr_exp.config.schema_check import validator

GOLDEN = Path(__file__).with_name("defaults.yaml")
MOST = 577
"""Options of all schemas. A new option replaces one that nobody sets."""
assert STAGES  # Imported for the schemas that it registers.


def schemas(root: type, path: str) -> Iterator[tuple[str, type]]:
    """A schema and the plain schemas below it, by path."""
    yield path, root
    for name, hint in field_types(root).items():
        if is_schema(hint):
            yield from schemas(hint, f"{path}.{name}".lstrip("."))


def all_schemas() -> dict[str, type]:
    found = dict(schemas(Config, ""))
    for target, schema in SCHEMAS.items():
        found.update(schemas(schema, target))
    return found


def defaults() -> dict[str, dict[str, Any]]:
    return {
        path or "(root)": {
            spec.name: default_of(spec)
            for spec in dataclasses.fields(schema)
            if spec.name != "_target_" and not is_schema(field_types(schema)[spec.name]) and not allowed_of(spec).node
        }
        for path, schema in all_schemas().items()
    }


def declared() -> set[tuple[str, str]]:
    """(schema, name) of every option, once for the class that declares it last, also if it only changes the default."""
    return {
        (
            next(part for part in schema.__mro__ if spec.name in vars(part).get("__annotations__", {})).__qualname__,
            spec.name,
        )
        for schema in all_schemas().values()
        for spec in dataclasses.fields(schema)
        if spec.name != "_target_" and not is_schema(field_types(schema)[spec.name]) and not allowed_of(spec).node
    }


def test_the_number_of_options_does_not_grow() -> None:
    assert len(declared()) <= MOST


def test_defaults_are_those_that_were_reviewed() -> None:
    assert defaults() == yaml.safe_load(GOLDEN.read_text())


@pytest.mark.parametrize("path", all_schemas())
def test_every_default_is_allowed_and_every_option_has_help(path: str) -> None:
    schema = all_schemas()[path]
    helped = field_help(schema)
    for spec in dataclasses.fields(schema):
        leaf = not is_schema(field_types(schema)[spec.name]) and not allowed_of(spec).node and spec.name != "_target_"
        default = default_of(spec)
        given = default not in ("???", None) and below_schema(field_types(schema)[spec.name]) is None
        permitted = not (leaf and given) or validator(schema, spec.name).isinstance_python(default)
        assert permitted, f"{path}.{spec.name}"
        assert not leaf or helped.get(spec.name, "").endswith("."), f"{path}.{spec.name} has no help"


@pytest.mark.parametrize("path", all_schemas())
def test_schemas_are_data_that_pickles(path: str) -> None:
    import pickle

    schema = all_schemas()[path]
    assert pickle.loads(pickle.dumps(schema)) is schema


if __name__ == "__main__":
    GOLDEN.write_text(yaml.safe_dump(defaults(), sort_keys=True))
