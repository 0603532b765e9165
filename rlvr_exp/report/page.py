"""The report as a single page: head, sections in the order of a reader's questions, configuration last."""

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rlvr_exp.report import cascade, curves, difficulty, logs, nbest, outcome, role_rates, samples, side_by_side
from rlvr_exp.report.data import RunData
from rlvr_exp.report.diagnosis import Diagnosis
from rlvr_exp.report.diagnosis_part import diagnosis_section
from rlvr_exp.report.differences import differences
from rlvr_exp.report.task_index import TaskInfo

STYLE, SCRIPT = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
UNFINISHED = "not finished"
MOST_VALUE = 200
"""Characters of an option's value."""
GROUPS = ("model", "data", "verifier", "reward", "algorithm", "curriculum", "optimizer")
"""Nodes of the configuration named in the head, where the stage has them."""


def page(run: RunData, known: Mapping[str, TaskInfo], diagnosis: Diagnosis, others: Sequence[RunData] = ()) -> str:
    """The complete document. It makes no network request, and its policy forbids any; it can be read without its
    script.

    Args:
        known: the tasks of its answers.
        others: runs to compare with.
    """
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(_stage(run))}: {escape(run.name)}</title><style>{STYLE}</style></head>"
        f"<body><main>{_head(run)}{_sections(run, known, diagnosis, others)}</main>"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _sections(run: RunData, known: Mapping[str, TaskInfo], diagnosis: Diagnosis, others: Sequence[RunData]) -> str:
    more, left_out = curves.other_charts(run.metrics)
    left = f"<p class='note'>{left_out} more metrics are in metrics.csv.</p>" if left_out else ""
    parts = [
        _section("Diagnosis", diagnosis_section(diagnosis, outcome.compared(run))),
        _section("Before and after" if outcome.compared(run) else "Measured", outcome.rate_table(run)),
        _section("Who is credited with what", cascade.cascade_section(run)),
        _section("Roles", role_rates.roles_section(run)),
        _section("Against the baseline", outcome.baseline_table(run)),
        _section("Beside other runs", side_by_side.side_by_side(run, others)),
        _section("Options that differ from the defaults", _differences(run)),
        _section("Training", _charts("big", curves.main_charts(run.metrics, run.step_counts))),
        _section("Health", _charts("", curves.curve_charts(run.metrics, run.step_counts))),
        _section("Verdicts and time", _charts("", _stacked(run))),
        _section("Throughput and memory", _charts("", curves.machine_charts(run.metrics)) + _machine(run)),
        _section("Held-out verdicts", outcome.verdict_table(run)),
        _section("Difficulty", difficulty.difficulty_rows(run, known)),
        _section("Families", outcome.family_rows(run)),
        _folded("Families in training", difficulty.training_families(run)),
        _section("Numbers", outcome.number_table(run)),
        _section("Verifier logs", logs.log_table(run)),
        *(_section(title, body) for title, body in samples.sections(run)),
        _section("All answers to a few tasks", nbest.lists(run, known)),
        _folded("More metrics", _charts("", more) + left),
        _folded("Configuration", f"<pre>{escape(run.config_text)}</pre>" if run.config_text else ""),
        _folded("Manifest", f"<pre>{escape(json.dumps(run.manifest, indent=2))}</pre>" if run.manifest else ""),
    ]
    return "".join(parts)


def _stacked(run: RunData) -> str:
    verdicts = curves.verdict_chart(run.step_counts, run.step_counts_every)
    return verdicts + curves.group_chart(run.metrics) + curves.phase_chart(run.metrics)


def _differences(run: RunData) -> str:
    found = differences(run.config)
    if not found:
        return '<p class="note">None: the run has its stage\'s defaults.</p>' if run.config else ""
    rows = "".join(
        f"<tr><th>{escape(key)}</th><td>{escape(_value(ours))}</td><td>{escape(_value(usual))}</td></tr>"
        for key, (ours, usual) in found.items()
    )
    return (
        f'<div class="wide"><table class="options"><tr><th></th><th>here</th><th>default</th></tr>{rows}</table></div>'
    )


def _value(value: Any) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, default=str)
    return text if len(text) <= MOST_VALUE else f"{text[:MOST_VALUE]}..."


def _machine(run: RunData) -> str:
    """The machine of the run, in a line."""
    hardware = run.manifest.get("hardware") or {}
    device = run.manifest.get("device") or {}
    parts = [
        f"{name.replace('_', ' ')}: {value}"
        for name, value in {**hardware, **device}.items()
        if value not in ([], None)
    ]
    return f'<p class="note">{escape("; ".join(parts))}</p>' if parts and run.metrics else ""


def _charts(kind: str, charts: str) -> str:
    return f'<div class="charts {kind}">{charts}</div>' if charts else ""


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>" if body else ""


def _folded(title: str, body: str) -> str:
    folded = f'<details class="folded"><summary>{title}</summary>{body}</details>'
    return f"<section>{folded}</section>" if body else ""


def _head(run: RunData) -> str:
    status = str(run.summary.get("status", UNFINISHED))
    reason = run.summary.get("reason")
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in _facts(run).items()
    )
    lines = [f'<p class="note">{escape(run.name)}</p>']
    lines += [f'<p class="reason">{escape(str(reason))}</p>'] if reason else []
    lines += (
        [f"<p><code>{escape(shlex.join(run.manifest['command']))}</code></p>"] if run.manifest.get("command") else []
    )
    title = f'{escape(_stage(run))} <span class="status {escape(status.split()[0])}">{escape(status)}</span>'
    return f"<header><h1>{title}</h1>{''.join(lines)}<dl>{facts}</dl></header>"


def _stage(run: RunData) -> str:
    return str(run.summary.get("stage") or run.config.get("stage") or "run")


def _facts(run: RunData) -> dict[str, str]:
    """Facts about the run, from the configuration and the manifest."""
    facts = {}
    if run.running:
        facts["now"] = "running"
    if "seconds" in run.summary:
        facts["duration"] = curves.duration(float(run.summary["seconds"]))
    steps = run.summary.get("steps") or (run.metrics[-1]["step"] if run.metrics else None)
    if steps:
        facts["steps"] = f"{steps:,}"
    if "seed" in run.config:
        facts["seed"] = str(run.config["seed"])
    isolation = (run.manifest.get("verifier") or {}).get("isolation") or {}
    if isolation.get("level"):
        facts["isolation"] = str(isolation["level"]) + (", not guarded" if isolation.get("guarded") is False else "")
    counted = {**(run.summary.get("metrics") or {}), **(run.metrics[-1] if run.metrics else {})}
    if own := counted.get("system/verifier_own_assertions"):
        held = counted["system/verifier_assertions"]
        facts["assertions"] = f"{own:,.0f} of {held:,.0f} decided by solutions' own comparing"
    for group in GROUPS:
        node = run.config.get(group)
        if isinstance(node, dict) and (label := _label(node)):
            facts[group] = label
    return facts


def _label(node: Mapping[str, Any]) -> str:
    """A readable label of the node: its name or path, else its class, else its terms."""
    for key in ("path", "name", "hub"):
        if isinstance(node.get(key), str) and node[key]:
            return str(node[key])
    if node.get("_target_"):
        return str(node["_target_"]).rsplit(".", 1)[-1]
    terms = node.get("terms")
    return ", ".join(terms) if isinstance(terms, dict) else ""
