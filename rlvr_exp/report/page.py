"""The report as a single page: head, sections in the order of a reader's questions, the options that differ from the defaults,
configuration last.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import resolved
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.stages import STAGES
from rlvr_exp.report import (
    adversarial,
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
from rlvr_exp.report.data import RunData
from rlvr_exp.report.diagnosis import Diagnosis, diagnosis_section
from rlvr_exp.report.head import head, stage_of
from rlvr_exp.report.tasks import TaskInfo

STYLE, SCRIPT = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
MOST_VALUE = 200
"""Characters of an option's value."""


def page(run: RunData, known: Mapping[str, TaskInfo], diagnosis: Diagnosis, others: Sequence[RunData] = ()) -> str:
    """The complete document. It makes no network request, and its policy forbids any; it can be read without its
    script.

    Args:
        known: the tasks of its answers.
        others: runs to compare with.
    """
    body = f"{head(run)}{_sections(run, known, diagnosis, others)}"
    return document(f"{stage_of(run)}: {run.name}", body)


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
        _section("Who is credited with what", cascade.cascade_section(run) + adversarial.adversarial_section(run)),
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


OWN = ("stage", "run.dir", "run.searchpath")
"""Options that differ in every run."""
ABSENT = "(none)"


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
