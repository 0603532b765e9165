"""Teams: several policies that act together in an environment of a domain, each of which starts from its own folder.

A team has a node and a stage of its name. `evaluate.NAME` and `infer.NAME` name a checkpoint of it. While it trains, its node
says which roles learn in a step (`learning`), the sizes of a role's batches (`sizes`), how many completions the last role samples
for each sample of the first one (`completions`), and which samples the first role draws (`samples`; None: as many as a group has).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.core.domains import domains, load
from rlvr_exp.core.errors import InputProblem

OF_MODEL = "model"
"""The value of `evaluate.NAME` and `infer.NAME` that takes the model node's own weights for all roles."""


@dataclass(frozen=True)
class Team:
    """What the core must know of a team."""

    name: str
    roles: tuple[str, ...]
    play: str
    """Import path of its Play (rlvr_exp.stages.shared.play)."""
    problems: Callable[[Any], Iterator[InputProblem]]
    """Problems of a configuration with this team."""

    def starts(self, config: Any) -> dict[str, str]:
        """Role -> the folder that its policy starts from; empty: the model node's weights. No roles without this team."""
        if (own := getattr(config, self.name, None)) is not None:
            return {role: getattr(own, role) for role in self.roles}
        nodes = (node for node in (config.evaluate, config.infer) if node is not None)
        checkpoint = next((getattr(node, self.name) for node in nodes), "")
        if not checkpoint:
            return {}
        return {role: "" if checkpoint == OF_MODEL else str(Path(checkpoint) / role) for role in self.roles}

    def option(self, config: Any, role: str) -> str:
        """The option that names the role's folder."""
        return f"{self.name}.{role}" if getattr(config, self.name) is not None else f"{config.stage}.{self.name}"


@cache
def teams() -> tuple[Team, ...]:
    """The teams of all domains."""
    return tuple(load(one.team) for one in domains().values() if one.team)


def team_of(config: Any) -> Team | None:
    """The team of a configuration; None if one policy, or the roles of its environment, act."""
    return next((team for team in teams() if team.starts(config)), None)


def team_node(config: Any) -> Any:
    """The node of the team that trains; None without one."""
    return next((node for team in teams() if (node := getattr(config, team.name, None)) is not None), None)


def starts(config: Any) -> dict[str, str]:
    """As `Team.starts`; empty without a team."""
    return team.starts(config) if (team := team_of(config)) else {}


def starts_missing(config: Any) -> Iterator[InputProblem]:
    """Folders of roles that hold no weights."""
    team = team_of(config)
    for role, folder in starts(config).items():
        there = Path(folder)
        if team and folder and not any((there / name).is_file() for name in ("config.json", "adapter_config.json")):
            trains = getattr(config, team.name) is not None
            allowed = "a checkpoint or an adapter" if trains else f"step_N/ of +stage={team.name}, or {OF_MODEL}"
            where, what = team.option(config, role), f"no weights of the {role} are there"
            yield InputProblem(where, what, folder, allowed, "", "correct the path")


def team_of_run(run: str) -> Team | None:
    """The team that a run directory is of, by its own config.yaml."""
    written = yaml.safe_load((Path(run) / "config.yaml").read_text(encoding="utf-8")) or {}
    return next((team for team in teams() if team.name == written.get("stage")), None)
