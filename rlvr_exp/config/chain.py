"""Options of the `chain` group: runs that follow one another, each with what those before it have left."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from rlvr_exp.config.options import configures
from rlvr_exp.core.errors import InputProblem

PLACE = re.compile(r"\{(\w+)\}")
CHAIN, PATH = "chain", "path"
"""The places of the chain's own directory and of `path`."""
SERVED = "engine=server"
OWN = ("run.dir=", "run.resume=")
"""Words that the chain says itself."""


@dataclass
class Chain:
    """What follows what."""

    reads: ClassVar[tuple[str, ...]] = ()
    """Nodes of the configuration that it reads besides its own."""


@configures("rlvr_exp.runs.chain.run_links")
@dataclass
class Links(Chain):
    """Runs one after the other, each in a directory of its own."""

    links: dict[str, list[str]] = field(default_factory=dict)
    """The words of each run's command, by its name, in order. {NAME} stands for the directory of an earlier run, {chain} for the
    chain's, {path} for `path`."""
    path: str = ""
    """Data of your own, such as CanItEdit or DafnyBench, that links name as {path}; without it those links are left out."""
    policy: list[str] = field(default_factory=list)
    """Further words of every command that loads a policy, such as model=qwen14b."""
    endpoint: list[str] = field(default_factory=list)
    """Further words of every command with engine=server, such as engine.url=URL; without any those links are left out."""
    words: list[str] = field(default_factory=list)
    """Further words of every run's command, such as +experiment=quick or seed=1."""

    def problems(self) -> list[InputProblem]:
        if not self.links:
            return [InputProblem("links", "no run is named", remedy="chain=edits, or chain.links.NAME=[WORD, ...]")]
        if not self.runs:
            what, remedy = "every run needs data or an endpoint of your own", "chain.path=DIR"
            return [InputProblem("path", what, "none", "a folder or a file", "", remedy)]
        return list(self._of_links())

    @property
    def runs(self) -> dict[str, list[str]]:
        """The links that are run: all, or without `path` or `endpoint` those that do not need it."""
        return {name: words for name, words in self.links.items() if not self._lacks(words)}

    def _lacks(self, words: list[str]) -> str:
        """The option that the words need and that is not given; empty: none."""
        if PATH in _places(words) and not self.path:
            return "chain.path=DIR"
        return 'chain.endpoint=["engine.url=URL"]' if SERVED in words and not self.endpoint else ""

    def _of_links(self) -> Iterator[InputProblem]:
        known = [CHAIN, PATH]
        for name, words in self.runs.items():
            where = f"links.{name}"
            if not re.fullmatch(r"\w+", name) or name in (CHAIN, PATH):
                yield InputProblem(where, "no name of a run", name, "letters, digits and _")
            if not any(word.startswith("+stage=") for word in words):
                yield InputProblem(where, "names no stage", " ".join(words), "+stage=NAME among its words")
            if own := [word for word in [*words, *self.policy, *self.endpoint, *self.words] if word.startswith(OWN)]:
                yield InputProblem(where, "the chain says itself where its runs are", own[0], remedy="drop it")
            if absent := sorted(_places(words) - {*known}):
                remedy = ", ".join(self._lacks(self.links[name]) for name in absent if name in self.links)
                yield InputProblem(where, "names no earlier run", ", ".join(absent), ", ".join(known), "", remedy)
            known.append(name)
        if lacking := [name for name, words in self.runs.items() if self._reads_left_out(words)]:
            what = "not given, and these runs read what the runs that need it would write"
            yield InputProblem("path", what, ", ".join(lacking), "a folder or a file", "", "chain.path=DIR")

    def _reads_left_out(self, words: list[str]) -> bool:
        """Whether words name a file in the chain's directory that only runs without `path` or `endpoint` would write."""
        left_out = [self.links[name] for name in self.links.keys() - self.runs.keys()]
        return any(
            _among(file, left_out) and not _among(file, self.runs.values())
            for word in words
            if not _writes(word) and (file := _file(word))
        )


def _among(file: str, commands: Iterable[list[str]]) -> bool:
    """Whether one of the commands writes the file, a file in that folder, or the folder around it."""
    written = [_file(word) for words in commands for word in words if _writes(word) and _file(word)]
    return any(f"{one}/".startswith(f"{file}/") or f"{file}/".startswith(f"{one}/") for one in written)


def _writes(word: str) -> bool:
    return word.partition("=")[0].endswith(".output")


def _file(word: str) -> str:
    """The file in the chain's directory that a word names; empty: none."""
    value = word.partition("=")[2]
    return value.removeprefix("{chain}/") if value.startswith("{chain}/") else ""


def _places(words: list[str]) -> set[str]:
    return {place for word in words for place in PLACE.findall(word)}
