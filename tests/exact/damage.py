"""Every file of a checkpoint damaged in every way, and every way in which the product reads a checkpoint.

A damaged file must be refused by name, or an older checkpoint must be used and reported; anything else has loaded
silently.
"""

import io
import json
import pickle
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

from trajectories import data

from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import is_adapter
from rlvr_exp.config.run import Checkpoint, Select
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.sealed import CARD, NAME
from rlvr_exp.launch.preflight import preflight_problems
from rlvr_exp.launch.resume import begin
from rlvr_exp.main import main
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.training.checkpoints import Checkpoints, Contents, restore
from rlvr_exp.training.selection import Selection

ATTACKS = ("truncated", "one bit", "emptied", "missing", "swapped", "pickled")


class Bomb:
    """What a pickle executes when it is opened."""

    def __init__(self, path: Path):
        self._path = path

    def __reduce__(self):
        return Path.touch, (self._path,)


class Attacked:
    """A copy of a run with two checkpoints, whose newer one is damaged.

    Args:
        words: the run's options.
        run: the completed run.
        foreign: another run of the same form.
        place: the folder of the copy.
    """

    def __init__(self, words: list[str], run: Path, foreign: Path, place: Path):
        self._words = [*words, f"data.path={data()}"]
        self.older, self.newer = sorted((run / "checkpoints").glob("step_*"))[-2:]
        self.root, self.alone = place / "both", place / "alone"
        for root, steps in ((self.root, (self.older, self.newer)), (self.alone, (self.newer,))):
            (root / "checkpoints").mkdir(parents=True)
            for name in ("config.yaml", "manifest.json"):
                shutil.copy(run / name, root / name)
            for step in steps:
                shutil.copytree(step, root / "checkpoints" / step.name)
        self._foreign = foreign / "checkpoints" / self.newer.name
        self.folder = self.alone / "checkpoints" / self.newer.name
        self._bomb = place / "opened"
        self.counts: Counter[str] = Counter()

    def all(self) -> list[tuple[str, str, str]]:
        """(file, attack, way) of everything that loaded silently, or opened a pickle."""
        assert not [way for way, refused in self.ways.items() if refused()], "a sound one is refused"
        silent = []
        files = (path for path in self.folder.rglob("*") if path.is_file() and path.name != CARD)
        for name in sorted(path.relative_to(self.folder).as_posix() for path in files):
            self.counts["files"] += 1
            for attack in ATTACKS:
                silent += [(name, attack, way) for way in self._attack(name, attack)]
        return silent

    def _attack(self, name: str, attack: str) -> Iterator[str]:
        places = [self.folder / name, self.root / "checkpoints" / self.newer.name / name]
        whole = places[0].read_bytes()
        hurt = self._hurt(whole, name, attack)
        if hurt == whole:
            self.counts["the other run's file is the same"] += 1
            return
        try:
            for path in places:
                path.unlink() if hurt is None else path.write_bytes(hurt)
            for way, refused in self.ways.items():
                self.counts["attempts"] += 1
                said = refused()
                # Beside a manifest of another run it is the other files that do not fit.
                named = bool(said) if (name, attack) == (NAME, "swapped") else Path(name).name in said
                if not named or self._bomb.exists():
                    yield way
        finally:
            for path in places:
                path.write_bytes(whole)

    def _hurt(self, whole: bytes, name: str, attack: str) -> bytes | None:
        """Content of the damaged file; None: there is none."""
        middle = len(whole) // 2
        if attack == "pickled":
            return pickle.dumps(Bomb(self._bomb))
        if attack == "swapped":
            return (self._foreign / name).read_bytes()
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        return {"truncated": whole[:middle], "one bit": flipped, "emptied": b"", "missing": None}[attack]

    @cached_property
    def ways(self) -> Mapping[str, Callable[[], str]]:
        """Each returns how it refuses; '' where it does not."""
        named = compose([*self._words, f"run.resume={self.alone}"])
        auto = compose([*self._words, "run.resume=auto", f"run.dir={self.root}"])
        config = {
            stage: compose([f"+stage={stage}", f"data.path={data()}", f"model.path={self.folder}"]).config
            for stage in READ
        }
        policy, checkpoints = load_policy(config["evaluate"].model, 0), Checkpoints(self.alone, Checkpoint())
        kept = json.loads((self.folder / "state.json").read_text())
        parts = {name: SimpleNamespace(load_state_dict=lambda _: None) for name in kept}
        found = {
            "run.resume=DIR": lambda: _refusal(lambda: begin(named, self.alone)),
            "run.resume=auto": lambda: self._older_of(begin(auto, self.root)),
            "Checkpoints.load": lambda: _refusal(lambda: _load(checkpoints, self.folder, policy, parts)),
            "best, restored": lambda: _refusal(lambda: restore(policy, self.folder)),
            "best, resumed": lambda: self._best(checkpoints),
            "load_policy": lambda: _refusal(lambda: load_policy(config["evaluate"].model, 0)),
        }
        for stage, one in config.items():
            found[f"{stage} model.path=DIR"] = lambda one=one: _told(one)
        if is_adapter(str(self.folder)):
            over = compose(["+stage=evaluate", f"data.path={data()}", f"model.adapter.path={self.folder}"]).config
            found["model.adapter.path=DIR"] = lambda: _told(over)
        return found

    def _older_of(self, start) -> str:
        """The notes of a start that uses the older checkpoint."""
        return " ".join(start.notes) if start.checkpoint == self.root / "checkpoints" / self.older.name else ""

    def _best(self, checkpoints: Checkpoints) -> str:
        selection = Selection(Select(metric="reward/mean"), checkpoints, SimpleNamespace())
        step = int(self.newer.name[5:])
        selection.load_state_dict({"by": ["reward/mean", "max"], "value": 1.0, "step": step, "waited": 0, "seen": step})
        return "" if selection.value is not None else AnyName()

    def by_command(self) -> None:
        """The options that a person types, once each: exit 2, the file named, and nothing is started."""
        (self.folder / NAME).write_text(json.dumps({**json.loads((self.folder / NAME).read_text()), "step": 1}))
        commands = [[*self._words, f"run.resume={self.alone}"]]
        commands += [[*self._words, "run.resume=auto", f"run.dir={self.alone}"]]
        commands += [[f"+stage={stage}", f"data.path={data()}", f"model.path={self.folder}"] for stage in READ]
        for words in commands:
            before, said = self._there(), io.StringIO()
            with redirect_stderr(said), redirect_stdout(said):
                code = main(words)
            assert code == 2 and f"{self.folder / NAME}: damaged" in said.getvalue(), said.getvalue()
            assert self._there() == before

    def _there(self) -> list[Path]:
        return [path for path in sorted(self.alone.rglob("*")) if path.name != ".lock"]


READ = ("evaluate", "infer", "sft")
"""Stages that load a policy from a folder; the last starts to train from it."""


class AnyName(str):
    """Refuses by using another checkpoint in its place."""

    def __contains__(self, _: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


def _load(checkpoints: Checkpoints, folder: Path, policy: Policy, parts: Mapping[str, SimpleNamespace]) -> None:
    """Resume from it as a child does, up to where training would start: only refusals count here."""
    checkpoints.load(folder, Contents(policy, {}, parts))


def _refusal(load: Callable[[], object]) -> str:
    try:
        load()
    except InputError as fault:
        return " ".join(Path(problem.where).name for problem in fault.problems)
    return ""


def _told(config) -> str:
    return " ".join(Path(problem.where).name for problem in preflight_problems(config, fetchable=False))
