"""The files that a run's policy starts from, by their content: a run can only be resumed with the same files.

The start is more than the initial weights. It remains in use as the reference policy, as the base of an adapter, as the
tokenizer and as the code of `trust_remote_code`, none of which a checkpoint contains. Never imports torch.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from rlvr_exp.config.cascade import starts
from rlvr_exp.config.model import Model, base, continued
from rlvr_exp.config.needs import EMBEDDED_MODELS, WEIGHTS, snapshots
from rlvr_exp.config.schema import Config
from rlvr_exp.core import sealed
from rlvr_exp.core.checksums import checksum
from rlvr_exp.core.errors import InputProblem

OTHERS = ("*.json", "*.py", "*.jinja", "*.model", "merges.txt", "vocab.txt")
"""Configurations, tokenizers and code."""
VALUE = ("value/*.safetensors",)
"""Of PPO, which continues with it."""
ABOUT = (sealed.NAME, "state.json", "trainer_state.json", "training_args.json")
"""Files about the run that wrote the folder, and not about its policy."""


def initial_weights(config: Config) -> dict[str, str]:
    """SHA-256 of each file of the policies that a run starts with, by `model/NAME`, `adapter/NAME`, `tokenizer/NAME` and
    `ROLE/NAME`, of roles with a model node of their own `ROLE/model/NAME`.

    Reads all weights once; files that this process has already checked are not read a second time.
    """
    found = _of_model(config.model)
    for role, own in config.roles.items():
        if own.model is not None and own.model != config.model:
            found |= {f"{role}/{name}": value for name, value in _of_model(own.model).items()}
    return found | _of_folders({role: folder for role, folder in starts(config).items() if folder}, config.model)


def _of_model(model: Model) -> dict[str, str]:
    folders = {"model": _base(model), "adapter": continued(model), "tokenizer": model.tokenizer}
    return _of_folders({part: folder for part, folder in folders.items() if folder}, model)


def _of_folders(folders: Mapping[str, str | Path], model: Model) -> dict[str, str]:
    weights = () if model.from_scratch else (*WEIGHTS, *VALUE)
    return {
        f"{part}/{path.relative_to(folder).as_posix()}": checksum(path)
        for part, folder in folders.items()
        for path in _files(Path(folder), (*OTHERS, *weights))
    }


def changed_initial_weights(theirs: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[InputProblem]:
    """Files of the initial weights that differ from those that the run started with, one problem each."""
    remedy = "bring the start model back that the run was started with, or a new run.dir"
    for name in sorted(theirs.keys() | ours.keys()):
        there, here = theirs.get(name, "no such file"), ours.get(name, "no such file")
        if there != here:
            yield InputProblem("model", f"the start model's {name} holds something else", here, there, "", remedy)


def _base(model: Model) -> Path | None:
    """The folder of the weights below any adapter; None: not on this machine, which is reported before a run starts."""
    named = base(model)
    folders = (Path(named), *_of_hub(named)) if named else (EMBEDDED_MODELS / model.embedded,)
    return next((folder for folder in folders if folder.is_dir()), None)


def _of_hub(name: str) -> Iterator[Path]:
    """The snapshot in the hub's cache for a name: the revision in `refs/main`."""
    for folder in snapshots(name):
        main = folder.parents[1] / "refs" / "main"
        if main.is_file() and main.read_text(encoding="utf-8").strip() == folder.name:
            yield folder


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return sorted(path for path in found if path.name not in ABOUT)
