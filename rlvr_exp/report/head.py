"""The head of the page: what was run, when, by which numbers, and how it ended."""

import shlex
from collections.abc import Mapping
from datetime import datetime
from html import escape
from typing import Any

from rlvr_exp.report.curves import duration
from rlvr_exp.report.data import RunData

UNFINISHED = "not finished"
GROUPS = ("data", "verifier", "reward", "algorithm", "curriculum", "optimizer")
"""Nodes of the configuration named in the head, where the stage has them."""


def head(run: RunData) -> str:
    status = str(run.summary.get("status", UNFINISHED))
    reason = run.summary.get("reason")
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in _facts(run).items() if value
    )
    lines = [f'<p class="note">{escape(run.name)}</p>']
    lines += [f'<p class="reason">{escape(str(reason))}</p>'] if reason else []
    lines += (
        [f"<p><code>{escape(shlex.join(run.manifest['command']))}</code></p>"] if run.manifest.get("command") else []
    )
    title = f'{escape(stage_of(run))} <span class="status {escape(status.split()[0])}">{escape(status)}</span>'
    return f"<header><h1>{title}</h1>{''.join(lines)}<dl>{facts}</dl></header>"


def stage_of(run: RunData) -> str:
    return str(run.summary.get("stage") or run.config.get("stage") or "run")


def _facts(run: RunData) -> dict[str, str]:
    """Facts about the run, from the configuration and the manifest; '' where one is not known."""
    node = {name: part for name, part in run.config.items() if isinstance(part, Mapping)}
    steps = run.summary.get("steps") or (run.metrics[-1]["step"] if run.metrics else None)
    rate = node.get("optimizer", {}).get("lr")
    facts = {
        "model": _model(run.config, node.get("model", {})),
        "started": _started(run.manifest),
        "now": "running" if run.running else "",
        "duration": duration(float(run.summary["seconds"])) if "seconds" in run.summary else "",
        "steps": f"{steps:,}" if steps else "",
        "learning rate": "" if rate is None else f"{rate:g}",
        "batch": _batch(node.get("algorithm", {})),
        "seed": str(run.config.get("seed", "")),
        **_isolation(run),
    }
    return facts | {group: _label(node[group]) for group in GROUPS if group in node}


def _model(config: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """The policy, or the policy of each role; the model that is embedded goes by its name."""
    loaded = config.get("cascade") or config.get("evaluate") or config.get("infer") or {}
    cascade = loaded.get("cascade") if isinstance(loaded, Mapping) else ""
    named = _label({key: value for key, value in model.items() if key != "_target_"})
    own = {role: one["model"] for role, one in (config.get("roles") or {}).items() if one.get("model")}
    roles = [f"{role}: {_label(node) or node.get('embedded', '')}" for role, node in own.items()]
    return ", ".join([str(cascade or named or model.get("embedded", "")), *roles] if model else roles)


def _started(manifest: Mapping[str, Any]) -> str:
    """Day and minute, in the time zone of the machine that ran it."""
    created = manifest.get("created")
    return f"{datetime.fromisoformat(str(created)):%Y-%m-%d %H:%M}" if created else ""


def _batch(algorithm: Mapping[str, Any]) -> str:
    """What a step learns from, as a person chose it."""
    prompts, completions = algorithm.get("prompts_per_step"), algorithm.get("group_size")
    if prompts and completions:
        return f"{prompts:,} prompts x {completions:,}"
    return f"{algorithm['batch_size']:,} golds" if algorithm.get("batch_size") else ""


def _isolation(run: RunData) -> dict[str, str]:
    """How candidates were isolated, and who decided their assertions."""
    facts = {}
    isolation = (run.manifest.get("verifier") or {}).get("isolation") or {}
    if isolation.get("level"):
        facts["isolation"] = str(isolation["level"]) + (", not guarded" if isolation.get("guarded") is False else "")
    counted = {**(run.summary.get("metrics") or {}), **(run.metrics[-1] if run.metrics else {})}
    if own := counted.get("system/verifier_own_assertions"):
        held = counted["system/verifier_assertions"]
        facts["assertions"] = f"{own:,.0f} of {held:,.0f} decided by solutions' own comparing"
    return facts


def _label(node: Mapping[str, Any]) -> str:
    """A readable label of the node: its path, package or name, else its class, else its terms."""
    for key in ("path", "package", "name", "hub"):
        if isinstance(node.get(key), str) and node[key]:
            return str(node[key])
    if node.get("_target_"):
        return str(node["_target_"]).rsplit(".", 1)[-1]
    terms = node.get("terms")
    return ", ".join(terms) if isinstance(terms, dict) else ""
