"""The registry of domains. The core asks it, and never imports a domain.

A domain is a folder with a file domain.py, whose DOMAIN lists what it adds: below rlvr_exp/domains, or below a folder of a user that
`hydra.searchpath` names. Modules and functions are import paths, `package.module` or `package.module:name`, which are imported when
they are needed. The program works without any of the folders.
"""

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem

PACKAGE = "rlvr_exp.domains"


@dataclass(frozen=True)
class Domain:
    """What a domain adds to the core."""

    name: str
    """The name of its folder."""
    schemas: str = ""
    """Module with the schemas of its options, which imports nothing heavy; empty: its classes are their own schemas."""
    stages: str = ""
    """Rows (Stage of rlvr_exp.config.options) by name of further stages."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Schemas that add options to the node of a stage, by the name of the node. They derive from the node's own schema."""
    abilities: frozenset[str] = frozenset()
    """What its tasks can do that those of other domains cannot: protocols of rlvr_exp.tasks.base by name."""
    rows: str = ""
    """RowReader (rlvr_exp.tasks.base) of rows of `infer.input`; empty: rows of its tasks are of one of the formats of verifiers."""
    picture: str = ""
    """Function of a prompt and the run's `data` node that draws the prompt as HTML in the report, '' for what it cannot draw."""
    inference: Mapping[str, str] = field(default_factory=dict)
    """Paths of environments that +stage=infer uses in place of others, by the path of these. Their schemas check the options of
    inference."""
    checks: tuple[str, ...] = ()
    """Functions of the configuration and the tasks' domain that yield problems of a run once its data are read."""
    causes: tuple[str, ...] = ()
    """Tables of further causes (rlvr_exp.report.cause) that a diagnosis looks for."""
    code_sets: tuple[str, ...] = ()
    """Sets of programs with tests, in their own formats (CodeSet of rlvr_exp.tasks.code_records)."""
    programs: str = ""
    """Function of a path, the form of problems and fields of the options: the domain of the programs with tests that are at the
    path, in any of these sets; None without any."""
    embedded: Mapping[str, str] = field(default_factory=dict)
    """Embedded models by name, and for each a function that returns its tasks and how its tokenizer splits text."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """Formats (classes, rlvr_exp.tasks.formats.base) of rows of +stage=verify by the name of the verifier that judges them."""
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Schemas of further nodes of the configuration by name."""
    stage_nodes: Mapping[str, str] = field(default_factory=dict)
    """Schemas of nodes that exist only under the stage of their name."""
    passed_over: Mapping[str, str] = field(default_factory=dict)
    """Functions by the name of a verifier that describe a tool on this machine that it does not use, '' without any."""
    team: str = ""
    """Team (rlvr_exp.config.roles): several policies that act together."""
    contests: Mapping[str, str] = field(default_factory=dict)
    """Modules of further contests of benchmark=verifiers by name (rlvr_exp.benchmarks.verifiers)."""
    report_sections: tuple[str, ...] = ()
    """Functions of a run (rlvr_exp.report.data.RunData) that draw its roles' credit as HTML in the report, '' without any."""

    def owns(self, target: str) -> bool:
        """Whether the class at an import path is the domain's."""
        return target.startswith((f"{PACKAGE}.{self.name}.", f"{self.name}."))


_OF_USERS: dict[str, Domain] = {}


def domains() -> Mapping[str, Domain]:
    """All domains by name: those of the package, then those of users."""
    return {**_of_package(), **_OF_USERS}


@cache
def _of_package() -> Mapping[str, Domain]:
    package = import_module(PACKAGE)
    names = sorted(one.name for one in pkgutil.iter_modules(package.__path__) if one.ispkg)
    return {name: import_module(f"{PACKAGE}.{name}.domain").DOMAIN for name in names}


def register(folder: Path) -> list[Domain]:
    """Register the domains in the subfolders of a user's folder, which is on Python's path. Return those that are new.

    Raises:
        InputError: a file domain.py cannot be used.
    """
    new = []
    for file in sorted(folder.glob("*/domain.py")):
        name, remedy = file.parent.name, "see docs/extending.md"
        try:
            found = import_module(f"{name}.domain").DOMAIN
        except Exception as fault:  # A user's module may fail in any way.
            what = f"the domain cannot be imported: {type(fault).__name__}: {fault}"
            raise InputError(InputProblem("hydra.searchpath", what, str(file), remedy=remedy)) from fault
        if not isinstance(found, Domain) or found.name != name:
            what, allowed = "DOMAIN is no domain of this folder's name", f"Domain(name={name!r}, ...)"
            raise InputError(InputProblem("hydra.searchpath", what, str(file), allowed, remedy=remedy))
        if name in _of_package():
            what, allowed = "the package has a domain of this name", f"another name than {', '.join(_of_package())}"
            raise InputError(InputProblem("hydra.searchpath", what, str(file), allowed))
        if name not in _OF_USERS:
            _OF_USERS[name] = found
            new.append(found)
    return new


def able(ability: str) -> str:
    """The choices of data whose tasks have an ability, in words."""
    return " or ".join(f"data={one.name}" for one in domains().values() if ability in one.abilities) or "other data"


def load(path: str) -> Any:
    """The object at `package.module:name`, or the module at `package.module`."""
    module, _, name = path.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found
