"""The report as a single page: the head with what was run and how it ended, sections in the order of a reader's questions, the
options that differ from the defaults, configuration last.
"""

import base64
import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import resolved
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.stages import STAGES
from rlvr_exp.core.domains import domains, load
from rlvr_exp.report import (
    answers,
    cascade,
    curves,
    distributions,
    markdown,
    nbest,
    outcome,
    role_rates,
    samples,
    side_by_side,
    tasks,
)
from rlvr_exp.report.curves import duration
from rlvr_exp.report.data import RunData
from rlvr_exp.report.diagnosis import Diagnosis, diagnosis_section
from rlvr_exp.report.tasks import TaskInfo

STYLE, SCRIPT = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
MOST_VALUE = 200
"""Characters of an option's value."""
UNFINISHED = "not finished"
GROUPS = ("data", "verifier", "reward", "algorithm", "curriculum", "optimizer")
"""Nodes of the configuration named in the head, where the stage has them."""
OWN = ("stage", "run.dir", "run.searchpath")
"""Options that differ in every run."""
ABSENT = "(none)"


def page(run: RunData, known: Mapping[str, TaskInfo], diagnosis: Diagnosis, others: Sequence[RunData] = ()) -> str:
    """The complete document. It makes no network request, and its policy forbids any; it can be read without its
    script.

    Args:
        known: the tasks of its answers.
        others: runs to compare with.
    """
    body = f"{_head(run)}{_sections(run, known, diagnosis, others)}"
    return document(f"{_stage_of(run)}: {run.name}", body)


def document(title: str, body: str) -> str:
    """A page of that body, with the style and the script of all pages."""
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{body}</main>"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _head(run: RunData) -> str:
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
    title = f'{escape(_stage_of(run))} <span class="status {escape(status.split()[0])}">{escape(status)}</span>'
    return f"<header><h1>{title}</h1>{''.join(lines)}<dl>{facts}</dl></header>"


def _stage_of(run: RunData) -> str:
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


def _sections(run: RunData, known: Mapping[str, TaskInfo], diagnosis: Diagnosis, others: Sequence[RunData]) -> str:
    more, left_out = curves.other_charts(run.metrics)
    left = f"<p class='note'>{left_out} more metrics are in metrics.csv.</p>" if left_out else ""
    title, result = markdown.results(run)
    parts = [
        _section(title, result),
        _section("Curves", side_by_side.compared_curves(run)),
        _section("Diagnosis", diagnosis_section(diagnosis, outcome.compared(run))),
        _section(
            "Before and after" if outcome.compared(run) else "Measured", "" if result else outcome.rate_table(run)
        ),
        _section("Answers", answers.answers_section(run)),
        _section("Who is credited with what", _credit(run)),
        _section("Roles", role_rates.roles_section(run)),
        _section("Measures", role_rates.measures_section(run)),
        _section("By kind of task", role_rates.strata_section(run)),
        _section("Against the baseline", outcome.baseline_table(run)),
        _section("Beside other runs", side_by_side.side_by_side(run, others)),
        _section("Options that differ from the defaults", _options(run)),
        _section("Training", _charts("big", curves.main_charts(run.metrics, run.step_counts))),
        _section("Health", _charts("", curves.curve_charts(run.metrics, run.step_counts))),
        _section("Verdicts and time", _charts("", _stacked(run))),
        _section("Throughput and memory", _charts("", curves.machine_charts(run.metrics)) + _machine(run)),
        _section("Held-out verdicts", outcome.verdict_table(run)),
        _section("Distributions", _charts("", distributions.distributions(run, known))),
        _section("Difficulty", distributions.difficulty_rows(run, known)),
        _section("Success by task", tasks.task_section(run, known)),
        _section("Families", outcome.family_rows(run)),
        _folded("Families in training", distributions.training_families(run)),
        _section("Numbers", outcome.number_table(run)),
        _section("Verifier logs", samples.log_table(run)),
        *(_section(title, body) for title, body in samples.sections(run)),
        _section("All answers to a few tasks", nbest.lists(run, known)),
        _folded("More metrics", _charts("", more) + left),
        _folded("Configuration", f"<pre>{escape(run.config_text)}</pre>" if run.config_text else ""),
        _folded("Manifest", f"<pre>{escape(json.dumps(run.manifest, indent=2))}</pre>" if run.manifest else ""),
    ]
    return "".join(parts)


def _credit(run: RunData) -> str:
    """Sections of domains about the credit of the roles."""
    sections = (load(path) for one in domains().values() for path in one.report_sections)
    return cascade.cascade_section(run) + "".join(section(run) for section in sections)


def _stacked(run: RunData) -> str:
    verdicts = curves.verdict_chart(run.step_counts, run.step_counts_every)
    return verdicts + curves.group_chart(run.metrics) + curves.phase_chart(run.metrics)


def _options(run: RunData) -> str:
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


def differences(config: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Options that differ from the defaults of the stage, by dotted key: (the run's value, the default). A node of another
    class is compared with that class's own defaults."""
    stage = config.get("stage")
    if stage not in STAGES:
        return {}
    usual = resolved(compose_lenient([f"+stage={stage}"]))
    return {key: pair for key, pair in _differing(config, usual, "") if key not in OWN}


def _differing(given: Mapping[str, Any], usual: Mapping[str, Any], above: str) -> Iterator[tuple[str, tuple[Any, Any]]]:
    usual = _of_class(given, usual)
    # An option missing from the run is not a difference: the run is of an earlier version.
    for name, ours in given.items():
        key, theirs = f"{above}{name}", usual.get(name, ABSENT)
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            yield from _differing(ours, theirs, f"{key}.")
        elif isinstance(ours, Mapping) and ours:
            yield from _differing(ours, {}, f"{key}.")
        elif type(ours) is not type(theirs) or ours != theirs:
            yield key, (ours, theirs)


def _of_class(given: Mapping[str, Any], usual: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults of a node's class where another class is the default; its name still differs."""
    target = given.get("_target_")
    if target is None or target == usual.get("_target_") or target not in SCHEMAS:
        return usual
    return {**asdict(SCHEMAS[target]()), "_target_": usual.get("_target_", ABSENT)}


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
