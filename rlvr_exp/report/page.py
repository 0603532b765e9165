"""The page of a run: its head with the status, sections in the order of a reader's questions, and the configuration at the end."""

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import resolved
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.roles import teams
from rlvr_exp.config.schema import STAGES
from rlvr_exp.core.domains import domains, load
from rlvr_exp.report import answers, charts, outcome, tasks
from rlvr_exp.report.data import RunData
from rlvr_exp.report.diagnosis import Diagnosis, diagnosis_section
from rlvr_exp.report.rendering import duration, part, render
from rlvr_exp.report.tasks import TaskInfo

STYLE, SCRIPT = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
MOST_VALUE = 200
"""Characters of an option's value."""
UNFINISHED = "not finished"
GROUPS = ("data", "verifier", "reward", "algorithm", "curriculum", "optimizer")
"""Nodes of the configuration in the head, if the stage has them."""
OWN = ("stage", "run.dir", "run.searchpath")
"""Options that differ in every run."""
ABSENT = "(none)"
FOLDED = (
    "Measures", "Changed options", "Success by difficulty", "Success by task", "Training success by family", "Verifier logs",
    "All answers to a few tasks", "More metrics", "Configuration", "Manifest",
)  # fmt: skip
"""Sections that a click opens."""
FOLDED_IN_TRAINING = ("Throughput and memory", "Distributions", "Success by family")
FOLDED_RESULTS = ("Commands", "Data", "Options that differ from the defaults of their stage", "Checkpoints")
"""Headings of a stage's `STAGE.md` that a click opens."""
RESULTS = {
    "compare": "Comparison",
    "rescore": "Old and new verdicts",
    "validate": "Validation",
    "solutions": "Solutions",
    "benchmark": "Benchmark",
    "chain": "Links of the chain",
    "study": "Answer",
}
"""Title of the result of a stage that prints tables and keeps them in `STAGE.md`."""


def page(run: RunData, known: Mapping[str, TaskInfo], diagnosis: Diagnosis, others: Sequence[RunData] = ()) -> str:
    """The complete document.

    Args:
        known: the tasks of the answers.
        others: runs to compare with.
    """
    status = str(run.summary.get("status", UNFINISHED))
    stage = str(run.summary.get("stage") or run.config.get("stage") or "run")
    command = shlex.join(run.manifest["command"]) if run.manifest.get("command") else ""
    facts = {name: value for name, value in _facts(run).items() if value}
    reason = str(run.summary.get("reason") or "")
    head = part("head", name=run.name, stage=stage, status=status, reason=reason, command=command, facts=facts)
    return document(f"{stage}: {run.name}", head + _sections(run, known, diagnosis, others))


def document(title: str, body: str) -> str:
    """A page with the style and the script of all pages. It is readable without its script, and its policy forbids network.

    Args:
        body: HTML.
    """
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    style, script = Markup(STYLE), Markup(SCRIPT)
    return render("page.html", title=title, body=Markup(body), style=style, script=script, digest=digest) + "\n"


def _facts(run: RunData) -> dict[str, str]:
    """Facts about the run, from the configuration and the manifest. Unknown facts are empty."""
    node = {name: part for name, part in run.config.items() if isinstance(part, Mapping)}
    steps = run.summary.get("steps") or (run.metrics[-1]["step"] if run.metrics else None)
    rate, created = node.get("optimizer", {}).get("lr"), run.manifest.get("created")  # In the time zone of its machine.
    facts = {
        "model": model_of(run.config),
        "started": f"{datetime.fromisoformat(str(created)):%Y-%m-%d %H:%M}" if created else "",
        "now": "running" if run.running else "",
        "duration": duration(float(run.summary["seconds"])) if "seconds" in run.summary else "",
        "steps": f"{steps:,}" if steps else "",
        "learning rate": "" if rate is None else f"{rate:g}",
        "batch": _batch(node.get("algorithm", {})),
        "seed": str(run.config.get("seed", "")),
        **_isolation(run),
    }
    return facts | {group: label_of(node[group]) for group in GROUPS if group in node}


def model_of(config: Mapping[str, Any]) -> str:
    """The policy of a run, or the policy of each role."""
    model = config.get("model") or {}
    nodes = [config.get(name) for name in ("evaluate", "infer")]
    team = next((node[one.name] for one in teams() for node in nodes if node and node.get(one.name)), "")
    named = label_of({key: value for key, value in model.items() if key != "_target_"})
    own = {role: one["model"] for role, one in (config.get("roles") or {}).items() if one.get("model")}
    roles = [f"{role}: {label_of(node) or node.get('embedded', '')}" for role, node in own.items()]
    return ", ".join([str(team or named or model.get("embedded", "")), *roles] if model else roles)


def _batch(algorithm: Mapping[str, Any]) -> str:
    """The size of a step's batch."""
    prompts, completions = algorithm.get("prompts_per_step"), algorithm.get("group_size")
    if prompts and completions:
        return f"{prompts:,} prompts x {completions:,}"
    return f"{algorithm['batch_size']:,} reference answers" if algorithm.get("batch_size") else ""


def _isolation(run: RunData) -> dict[str, str]:
    """The isolation of candidates, and the assertions that their own code decided."""
    facts = {}
    isolation = (run.manifest.get("verifier") or {}).get("isolation") or {}
    if isolation.get("level"):
        facts["isolation"] = str(isolation["level"]) + (", unguarded" if isolation.get("guarded") is False else "")
    counted = {**(run.summary.get("metrics") or {}), **(run.metrics[-1] if run.metrics else {})}
    if own := counted.get("system/verifier_own_assertions"):
        held = counted["system/verifier_assertions"]
        facts["assertions"] = f"{own:,.0f} of {held:,.0f} decided by the comparison methods of solutions"
    return facts


def label_of(node: Mapping[str, Any]) -> str:
    """A label of the node: its path, package or name, else its class, else its terms."""
    for key in ("path", "package", "name", "hub"):
        if isinstance(node.get(key), str) and node[key]:
            return str(node[key])
    if node.get("_target_"):
        return str(node["_target_"]).rsplit(".", 1)[-1]
    terms = node.get("terms")
    return ", ".join(terms) if isinstance(terms, dict) else ""


def _sections(run: RunData, known: Mapping[str, TaskInfo], diagnosis: Diagnosis, others: Sequence[RunData]) -> Markup:
    more, left_out = charts.other_charts(run.metrics)
    both, (title, result) = outcome.compared(run), results(run)
    drawn = [load(path)(run) for one in domains().values() for path in one.report_sections]
    sections = {
        title: result,
        "Curves": charts.compared_curves(run),
        "Diagnosis": diagnosis_section(diagnosis, both),
        "Success before and after" if both else "Measurements": "" if result else outcome.rate_table(run),
        "Answers": answers.answers_section(run),
        "Credit by role": Markup("".join(drawn)),
        "Roles": outcome.roles_section(run),
        "Measures": outcome.measures_section(run),
        "Success by kind of task": outcome.strata_section(run),
        "Difference from the baseline": outcome.baseline_table(run),
        "Comparison with other runs": outcome.other_runs(run, others),
        "Changed options": _options(run),
        "Training": part("charts", kind="big", charts=charts.main_charts(run.metrics, run.step_counts)),
        "Health": charts.curve_charts(run.metrics, run.step_counts),
        "Verdicts and time": part("charts", charts=charts.stacked_charts(run)),
        "Throughput and memory": part("charts", charts=charts.machine_charts(run.metrics)) + _machine(run),
        "Held-out verdicts": outcome.verdict_table(run),
        "Distributions": part("charts", charts=tasks.distributions(run, known)),
        "Success by difficulty": tasks.difficulty_rows(run, known),
        "Success by task": tasks.task_section(run, known),
        "Success by family": outcome.family_rows(run),
        "Training success by family": tasks.training_families(run),
        "Numbers": outcome.number_table(run),
        "Verifier logs": answers.log_table(run),
        "Answers on held-out tasks": answers.held_out_samples(run),
        "Answers of the last training step": answers.training_samples(run),
        "All answers to a few tasks": answers.answer_lists(run, known),
        "More metrics": part("more_metrics", charts=more, left=left_out),
        "Configuration": part("text", text=run.config_text),
        "Manifest": part("text", text=json.dumps(run.manifest, indent=2) if run.manifest else ""),
    }
    return part("sections", sections=sections, folded=(*FOLDED, *(FOLDED_IN_TRAINING if run.metrics else ())))


def _options(run: RunData) -> Markup:
    found = differences(run.config)
    rows = [(key, _value(ours), _value(usual)) for key, (ours, usual) in found.items()]
    return part("options", rows=rows) if run.config else Markup()


def differences(config: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Options that differ from the stage's defaults: (the run's value, the default) by dotted key.

    A node of another class is compared with the defaults of that class.
    """
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
    """The defaults of the node's own class, with the name of the default class."""
    target = given.get("_target_")
    if target is None or target == usual.get("_target_") or target not in SCHEMAS:
        return usual
    return {**asdict(SCHEMAS[target]()), "_target_": usual.get("_target_", ABSENT)}


def _value(value: Any) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, default=str)
    return text if len(text) <= MOST_VALUE else f"{text[:MOST_VALUE]}..."


def _machine(run: RunData) -> Markup:
    """The machine of the run, in a line."""
    facts = {**(run.manifest.get("hardware") or {}), **(run.manifest.get("device") or {})}
    shown = [f"{name.replace('_', ' ')}: {value}" for name, value in facts.items() if value not in ([], None)]
    return part("note", text="; ".join(shown)) if shown and run.metrics else Markup()


_LINK = re.compile(r"\[([^]]+)\]\(([\w./%-]+)\)")
"""To a file below the page."""


def results(run: RunData) -> tuple[str, Markup]:
    """(title, HTML) of the run's `STAGE.md` below its picture `STAGE.svg`. Empty for a run without this file."""
    stage = str(run.config.get("stage"))
    path, picture = (run.directory / f"{stage}.{ending}" for ending in ("md", "svg"))
    if stage not in RESULTS or not path.is_file():
        return "", Markup()
    drawn = Markup(picture.read_text(encoding="utf-8")) if picture.is_file() else ""
    return RESULTS[stage], part("picture", drawn=drawn) + as_html(path.read_text(encoding="utf-8"))


def as_html(text: str) -> Markup:
    """Markdown of a stage's result: pipe tables, headings, links and lines of text, no more."""
    found = Markup()
    for section in re.split(r"(?m)^(?=## )", text):
        title = section.partition("\n")[0].lstrip("# ")
        folded = title in FOLDED_RESULTS
        body = _plain_html(section.partition("\n")[2] if folded else section)
        found += part("folded", title=title, body=body) if folded else body
    return found


def _plain_html(text: str) -> Markup:
    parts = Markup()
    for kind, group in groupby(text.splitlines(), lambda line: line[:1] if line[:1] in ("|", "#") else ""):
        lines = [line for line in group if line.strip()]
        if kind == "|":
            heads, *rows = [_cells(line) for line in lines if not re.fullmatch(r"[|:\- ]+", line)]
            parts += part("table", heads=heads, rows=rows)
        elif kind == "#":
            # The page has a title of its own.
            parts += part("headings", lines=[line.lstrip("# ") for line in lines if line.startswith("##")])
        elif lines:
            parts += part("reason", text="\n".join(lines))
    return parts


def _cells(line: str) -> list[Markup]:
    cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
    return [Markup(_LINK.sub(r'<a href="\2">\1</a>', str(escape(cell.strip().replace("\\|", "|"))))) for cell in cells]
