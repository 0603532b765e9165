"""Options of the `chain` group: runs that follow one another, each with what those before it have left."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from rlvr_exp.config.options import configures
from rlvr_exp.core.errors import InputProblem

PLACE = re.compile(r"\{(\w+)\}")
CHAIN, PATH, URL = "chain", "path", "url"
"""The places of the chain's own directory, of `path` and of `url`."""
REMEDIES = {PATH: "chain.path=DIR", URL: "chain.url=URL"}
OWN = ("run.dir=", "run.resume=")
"""Words that the chain says itself."""


@dataclass
class Chain:
    """What follows what."""

    reads: ClassVar[tuple[str, ...]] = ()
    """Nodes of the configuration that it reads besides its own."""


@configures("rlvr_exp.chains.links.run_links")
@dataclass
class Links(Chain):
    """Runs one after the other, each in a directory of its own."""

    links: dict[str, list[str]] = field(default_factory=dict)
    """The words of each run's command, by its name, in order. {NAME} stands for the directory of an earlier run, {chain} for the
    chain's, {path} for `path`."""
    path: str = ""
    """Data of your own, such as CanItEdit or DafnyBench, that links name as {path}; without it those links are left out."""
    url: str = ""
    """An endpoint that links name as {url}; without it those links are left out."""
    policy: list[str] = field(default_factory=list)
    """Further words of every command that loads a policy, such as model=qwen14b."""
    words: list[str] = field(default_factory=list)
    """Further words of every run's command, such as +experiment=quick or seed=1."""

    def problems(self) -> list[InputProblem]:
        if not self.links:
            return [InputProblem("links", "no run is named", remedy="chain=edits, or chain.links.NAME=[WORD, ...]")]
        if not self.runs:
            what, remedy = "every run needs data or an endpoint of your own", "chain.path=DIR, chain.url=URL"
            return [InputProblem("path", what, "none", "a folder or a file", "", remedy)]
        return list(self._of_links())

    @property
    def runs(self) -> dict[str, list[str]]:
        """The links that are run: all, or without `path` or `url` those that do not need it."""
        absent = {name for name, value in self.given.items() if not value}
        return {name: words for name, words in self.links.items() if not absent & _places(words)}

    @property
    def given(self) -> dict[str, str]:
        """What a person names, by its place."""
        return {PATH: self.path, URL: self.url}

    def _of_links(self) -> Iterator[InputProblem]:
        known = [CHAIN, *self.given]
        for name, words in self.runs.items():
            where = f"links.{name}"
            if not re.fullmatch(r"\w+", name) or name in (CHAIN, *self.given):
                yield InputProblem(where, "no name of a run", name, "letters, digits and _")
            if not any(word.startswith("+stage=") for word in words):
                yield InputProblem(where, "names no stage", " ".join(words), "+stage=NAME among its words")
            if own := [word for word in [*words, *self.policy, *self.words] if word.startswith(OWN)]:
                yield InputProblem(where, "the chain says itself where its runs are", own[0], remedy="drop it")
            if absent := sorted(_places(words) - {*known}):
                left_out = [place for name in absent if name in self.links for place in _places(self.links[name])]
                remedy = ", ".join(REMEDIES[place] for place in self.given if place in left_out)
                yield InputProblem(where, "names no earlier run", ", ".join(absent), ", ".join(known), "", remedy)
            known.append(name)


def _places(words: list[str]) -> set[str]:
    return {place for word in words for place in PLACE.findall(word)}
