"""The registry of domains. The core asks it, and never imports a domain.

A domain is a folder of rlvr_exp/domains with a file domain.py, whose DOMAIN lists what it adds. Modules and functions are import
paths, `package.module` or `package.module:name`, which are imported when they are needed. The program works without the folder.
"""

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

PACKAGE = "rlvr_exp.domains"


@dataclass(frozen=True)
class Domain:
    """What a domain adds to the core."""

    name: str
    schemas: str
    """Module with the schemas of its options. It imports nothing heavy."""
    rows: str = ""
    """RowReader (rlvr_exp.tasks.base) of rows of `infer.input`; empty: rows of its tasks are of one of the formats of verifiers."""
    picture: str = ""
    """Function of a prompt and the run's `data` node that draws the prompt as HTML in the report, '' for what it cannot draw."""
    engines: Mapping[str, str] = field(default_factory=dict)
    """Makers of engines of +stage=infer, by the path of the environment's class: functions of the configuration, the policies, the
    verifier, the tasks' domain and the sampling engine."""
    checks: tuple[str, ...] = ()
    """Functions of the configuration and the tasks' domain that yield problems of a run once its data are read."""
    causes: tuple[str, ...] = ()
    """Tables of further causes (rlvr_exp.report.evidence) that a diagnosis looks for."""
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
    team: str = ""
    """Team (rlvr_exp.config.roles): several policies that act together."""
    contests: Mapping[str, str] = field(default_factory=dict)
    """Modules of further contests of benchmark=verifiers by name (rlvr_exp.benchmarks.verifiers)."""
    report_sections: tuple[str, ...] = ()
    """Functions of a run (rlvr_exp.report.data.RunData) that draw its roles' credit as HTML in the report, '' without any."""

    def owns(self, target: str) -> bool:
        """Whether the class at an import path is the domain's."""
        return target.startswith(f"{PACKAGE}.{self.name}.")


@cache
def domains() -> Mapping[str, Domain]:
    """All domains by name."""
    package = import_module(PACKAGE)
    names = sorted(one.name for one in pkgutil.iter_modules(package.__path__) if one.ispkg)
    return {name: import_module(f"{PACKAGE}.{name}.domain").DOMAIN for name in names}


def load(path: str) -> Any:
    """The object at `package.module:name`, or the module at `package.module`."""
    module, _, name = path.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found
