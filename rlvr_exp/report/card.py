"""The model card of a checkpoint: README.md in the format of Hugging Face, from the files of the run directory.

Training writes the card with each checkpoint, so that a killed run has it too. When the run ends, its parent writes the cards again, with
the success after training. A card holds no time and no secret. The manifest of a checkpoint has no checksum of it.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.model import EMBEDDED, EMBEDDED_MODELS, FILE, converted_folder, recorded_base
from rlvr_exp.config.needs import snapshots
from rlvr_exp.config.run import Select
from rlvr_exp.config.stage_options import HUB_NAME, hub_record
from rlvr_exp.core.files import json_of, write_text
from rlvr_exp.core.measures import counted, scale_of
from rlvr_exp.core.sealed import CARD, STEP
from rlvr_exp.core.secrets import masked
from rlvr_exp.records import manifest
from rlvr_exp.records.context import read_summary
from rlvr_exp.records.tracking import read_metrics
from rlvr_exp.report.outcome import title

UNKNOWN = "unknown"
OWN = "rlvr_exp"
PIPELINE = "text-generation"
LICENCE_ID = re.compile(r"[a-z0-9.+-]+")
FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
VERSIONS = ("rlvr_exp", "python", "torch", "transformers", "trl", "peft")
HOLDS_LICENCE = (CARD, "dataset_info.json", "metadata.json")
"""Files of a folder that may name its licence: a card, the description of `save_to_disk`, the record of +stage=prepare."""


@dataclass(frozen=True)
class Source:
    """A base model or a data set."""

    name: str
    """A hub name, a folder or a package."""
    licence: str
    commit: str = ""
    """Of a folder that +stage=prepare prepare=hub downloaded."""

    @property
    def shown(self) -> str:
        return f"`{self.name}`" + (f" at commit {self.commit}" if self.commit else "")


def write_cards(run: Path) -> None:
    """Write the card of every checkpoint of a run again, from the files of the run as they are now."""
    for folder in sorted((run / "checkpoints").glob("step_*")):
        if (step := STEP.fullmatch(folder.name)) and folder.is_dir():
            write_text(folder / CARD, card(run, int(step[1]), folder))


def card(run: Path, step: int, folder: Path) -> str:
    """Return the card of the checkpoint of a step.

    Args:
        folder: the files of the checkpoint, under their final or a temporary name.
    """
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    about = json.loads((run / manifest.NAME).read_text(encoding="utf-8"))
    bases = [source for node in _models(config, folder) if (source := _base_of(node, folder))]
    data = _data_of(config.get("data") or {})
    body = [
        f"# {config['stage']}, step {step}",
        f"This policy was trained by `+stage={config['stage']}` of {OWN}. It loads with {_loader(folder)}.",
        *_section("Data", _data(data, about)),
        *_section("Base model", _base(bases, about)),
        *_section("Configuration", _configuration(config, about, step)),
        *_section("Success", _figures(run, config, about, step)),
        *_section("Reproduction", _commands(run, about)),
        *_section("Licence", _licences(bases, data)),
    ]
    front = yaml.safe_dump(_front(config, bases, data, folder), sort_keys=False, allow_unicode=True)
    return masked(f"---\n{front}---\n\n" + "\n\n".join(body) + "\n")


def _front_of(path: Path) -> dict[str, Any]:
    """The front matter of a card; empty if there is none."""
    try:
        found = FRONT.match(path.read_text(encoding="utf-8"))
        values = yaml.safe_load(found[1]) if found else {}
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return values if isinstance(values, dict) else {}


def _base_of(node: Mapping[str, Any], folder: Path) -> Source | None:
    """The model that a `model` node starts from, or the one below the adapter of the checkpoint; None for random weights."""
    if node.get("from_scratch") or node.get("random_weights"):
        return None
    below = next((recorded_base(str(path.parent)) for path in sorted(folder.glob(f"**/{FILE}"))), "")
    place = below or str(node.get("path") or "")
    package = str(node.get("package") or "")
    if package and place in ("", str(converted_folder(package))):
        return Source(package.replace("_", "-"), _of_package(package.replace("_", "-")))
    if not place and not node.get("name"):
        place = str(EMBEDDED_MODELS / str(node.get("embedded") or EMBEDDED[0]))
    if Path(place).parent == EMBEDDED_MODELS:
        return Source(f"{OWN}/{Path(place).name}", _of_package(OWN))
    name = place or str(node["name"])
    folders = [Path(name), *(snapshots(name) if HUB_NAME.fullmatch(name) else ())]
    licence = next((found for one in folders if (found := _licence(one))), UNKNOWN)
    return _downloaded(Path(name)) or Source(name, licence)


def _data_of(node: Mapping[str, Any]) -> Source | None:
    """The data of a `data` node; None if the stage reads none."""
    if not node:
        return None
    if path := node.get("path"):
        place = Path(str(path))
        folder = place if place.is_dir() else place.parent
        return _downloaded(folder) or Source(str(path), _licence(folder) or UNKNOWN)
    target = str(node.get("_target_"))
    if not target.startswith(f"{OWN}.domains."):
        return Source(target, UNKNOWN)
    return Source(f"{OWN}/{target.split('.')[2]}", _of_package(OWN))


def _downloaded(folder: Path) -> Source | None:
    record = json_of(hub_record(folder))
    return Source(str(record["name"]), _licence(folder) or UNKNOWN, str(record["commit"])) if record else None


def _licence(folder: Path) -> str:
    for name in HOLDS_LICENCE:
        found = _front_of(folder / name) if name == CARD else json_of(folder / name) or {}
        value = found.get("license") or found.get("licences")
        if isinstance(value, Mapping | list):
            value = ", ".join(str(one) for one in value if one)
        if value:
            return str(value)
    return ""


def _of_package(name: str) -> str:
    """The licence of an installed package."""
    try:
        fields: Any = metadata(name)
    except PackageNotFoundError:
        return "Apache-2.0" if name == OWN else UNKNOWN
    return str(fields.get("License-Expression") or fields.get("License") or UNKNOWN)


def _models(config: Mapping[str, Any], folder: Path) -> list[Mapping[str, Any]]:
    """The `model` nodes of the roles in a checkpoint, or that of the run. A teacher is no role of a checkpoint."""
    common, own, team = (config.get(name) or {} for name in ("model", "roles", str(config["stage"])))
    found = []
    for role in _roles(folder):
        start = team.get(role)  # The folder that a role of a team starts from.
        found.append(
            {"path": start} if isinstance(start, str) and start else (own.get(role) or {}).get("model") or common
        )
    return found or [common]


def _front(config: Mapping[str, Any], bases: Sequence[Source], data: Source | None, folder: Path) -> dict[str, Any]:
    adapter = _is_adapter(folder)
    names, licences = ({getattr(one, key) for one in bases} for key in ("name", "licence"))
    front: dict[str, Any] = {}
    if names:
        front["base_model"] = sorted(names) if len(names) > 1 else next(iter(names))
        front["base_model_relation"] = "adapter" if adapter else "finetune"
    front |= {"library_name": "peft" if adapter else "transformers", "pipeline_tag": PIPELINE}
    front["tags"] = [OWN, str(config["stage"]), *(["lora"] if adapter else [])]
    name = next(iter(licences)).lower() if len(licences) == 1 else UNKNOWN
    front["license"] = name if LICENCE_ID.fullmatch(name) else "other"
    if data:
        front["datasets"] = [data.name]
    return front


def _is_adapter(folder: Path) -> bool:
    return any(folder.glob(f"**/{FILE}"))


def _loader(folder: Path) -> str:
    call = "`AutoPeftModelForCausalLM.from_pretrained`" if _is_adapter(folder) else "`from_pretrained` of Transformers"
    roles = _roles(folder)
    return call + (f", from the folder of each role: {', '.join(roles)}" if roles else "")


def _roles(folder: Path) -> list[str]:
    """Roles with a folder of their own in a checkpoint."""
    return sorted({path.parent.name for name in ("config.json", FILE) for path in folder.glob(f"*/{name}")})


def _section(name: str, lines: Iterator[str]) -> Iterator[str]:
    found = [*lines]
    if found:
        yield f"## {name}"
        yield "\n".join(found)


def _data(data: Source | None, about: Mapping[str, Any]) -> Iterator[str]:
    if data is None:
        return
    yield f"Source: {data.shown}. Licence: {data.licence}.\n"
    yield from _table("split", "tasks", "fingerprint of the tasks")
    for name, split in (about.get("data") or {}).items():
        yield f"| {name} | {split['tasks']:,} | `{split['fingerprint']}` |"


def _base(bases: Sequence[Source], about: Mapping[str, Any]) -> Iterator[str]:
    for one in dict.fromkeys(bases):
        yield f"{one.shown}. Licence: {one.licence}."
    if not bases:
        yield "None: the weights began as random numbers."
    if files := about.get("start"):
        yield ""
        yield from _table("file", "SHA-256")
        yield from (f"| {name} | `{value}` |" for name, value in files.items())


def _configuration(config: Mapping[str, Any], about: Mapping[str, Any], step: int) -> Iterator[str]:
    algorithm, code = config.get("algorithm") or {}, about.get("git") or {}
    commit = code.get("commit", UNKNOWN) + (" with local changes" if code.get("dirty") else "")
    versions = about.get("versions") or {}
    rows = {
        "stage": config["stage"],
        "algorithm": str(algorithm.get("_target_", UNKNOWN)).rpartition(".")[2],
        "step": f"{step} of {algorithm.get('max_steps', UNKNOWN)}",
        "seed": config.get("seed"),
        "overrides": " ".join(
            f"`{word}`" for word in (about.get("command") or ())[3:] if not word.startswith("+stage=")
        ),
        "commit": commit,
        "versions": ", ".join(f"{name} {versions[name]}" for name in VERSIONS if versions.get(name)),
    }
    yield from _table("option", "value")
    yield from (f"| {name} | {value} |" for name, value in rows.items() if value not in ("", None))
    yield "\n`checkpoint.json` holds every option."


def _figures(run: Path, config: Mapping[str, Any], about: Mapping[str, Any], step: int) -> Iterator[str]:
    summary = read_summary(run) or {}
    before = summary.get("before") or (json_of(run / "evaluation" / "before.json") or {}).get("rates") or {}
    after, ended = summary.get("after") or {}, _measured_step(config, summary)
    split = (config.get("evaluation") or {}).get("split")
    if before or after:
        yield f"Rates on the split `{split}`, with 95% intervals over tasks.\n"
        yield from _table("rate", "before training", f"after training, of step {ended}" if after else "after training")
        for name in dict.fromkeys([*before, *after]):
            yield f"| {title(name)} | {_rate(before.get(name), name)} | {_rate(after.get(name), name)} |"
    if after and ended != step:
        yield f"\nThe rates after training are those of step {ended}, not of this checkpoint (step {step})."
    elif not after:
        status = summary.get("status") or "in progress"
        yield f"\nNo rate after training: the run was {status} when this card was written."
    yield from _selected(run, config, about, step)


def _measured_step(config: Mapping[str, Any], summary: Mapping[str, Any]) -> int:
    """The step whose weights were measured after training: the best one if the run ended with it, else the last one."""
    best = (summary.get("metrics") or {}).get("best/step")
    restored = ((config.get("run") or {}).get("select") or {}).get("restore", True)
    return int(best if best is not None and restored else summary.get("steps") or 0)


def _selected(run: Path, config: Mapping[str, Any], about: Mapping[str, Any], step: int) -> Iterator[str]:
    select, measured = (config.get("run") or {}).get("select") or {}, about.get("select") or {}
    row = next((row for row in reversed(read_metrics(run)) if row["step"] == step), {})
    metric = select.get("metric")
    value = Select(metric=metric).value(row) if metric else None
    if value is None:
        return
    if row.get(f"{metric}/low") is not None:
        ends = {
            "value": value,
            "low": row[f"{metric}/low"],
            "high": row[f"{metric}/high"],
            "n": measured.get("tasks", 0),
        }
        yield f"\nSelection metric `{metric}`: {_rate(ends, 'pass_at_1')} of the split `{measured.get('split')}`."
    else:
        yield f"\nSelection metric `{metric}`: {value:.4g}. It has no interval."


def _rate(rate: Mapping[str, Any] | None, metric: str) -> str:
    if rate is None:
        return ""
    value, low, high = (scale_of(metric).shown(rate[key]) for key in ("value", "low", "high"))
    return f"{value} (95% CI {low} to {high}, {counted(rate['n'])})"


def _commands(run: Path, about: Mapping[str, Any]) -> Iterator[str]:
    for number, words in enumerate(manifest.commands(run)):
        if number:
            yield "\nThe run was resumed by:\n"
        yield f"    {shlex.join(words)}"


def _licences(bases: Sequence[Source], data: Source | None) -> Iterator[str]:
    for kind, one in (*(("Base model", base) for base in dict.fromkeys(bases)), ("Data", data)):
        if one is not None:
            yield f"- {kind} `{one.name}`: {one.licence}"
    yield "\nThe front matter repeats the licence of the base model. Check both licences before you publish the weights."


def _table(*heads: str) -> tuple[str, str]:
    return f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)
