"""How an answer in stages of reasoning came to be: outputs with the tester's critique beside each, tests against all programs."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

MOST_CHARACTERS, MOST_TESTS, MOST_PROGRAMS = 4000, 40, 16
"""Characters of a text, tests, and programs with a column of their own."""


def worked_out(row: Mapping[str, Any]) -> str:
    """Of a row of +stage=infer: the chosen chain, then the tests with a column for each sample's program."""
    return f"{_stages(row['stages'], row.get('critiques') or {})}{_tests(row)}{_unread(row)}"


def beside_answer(about: Mapping[str, Any]) -> str:
    """Of an evaluated episode: the outputs before its answer, folded, and the tester's tests with what came of them; '' of others."""
    earlier = list((about.get("stages") or {}).items())[:-1]
    chain = f"<details><summary>the stages before it</summary>{_stages(dict(earlier), {})}</details>" if earlier else ""
    if not about.get("tests"):
        return chain
    facts = [
        f"{name} {about[key]:.0%}"
        for name, key in (("valid", "validity"), ("passed by this answer", "pass_rate"))
        if about.get(key) is not None
    ]
    return f"{chain}<h4>tests <small>{', '.join(facts)}</small></h4>{_pre(about['tests'])}"


def _stages(stages: Mapping[str, str], critiques: Mapping[str, str]) -> str:
    heads = "<tr><th></th><th>solver</th><th>tester</th></tr>" if critiques else "<tr><th></th><th>solver</th></tr>"
    said = {stage: f"<td>{escape(critiques.get(stage, ''))}</td>" if critiques else "" for stage in stages}
    rows = "".join(
        f"<tr><th>{escape(stage)}</th><td>{_pre(text)}</td>{said[stage]}</tr>" for stage, text in stages.items()
    )
    return f'<div class="wide chain"><table>{heads}{rows}</table></div>'


def _tests(row: Mapping[str, Any]) -> str:
    """A row for each test: whether it is valid, and which programs it catches; then what each program passes."""
    samples, tests = row["samples"][:MOST_PROGRAMS], row.get("tests") or []
    if not tests and len(samples) < 2:
        return ""
    numbers = "".join(f"<th>{_number(place, row['sample'])}</th>" for place in range(len(samples)))
    heads = f"<tr><th>test</th><th>set</th><th></th>{numbers}</tr>"
    lines = "".join(_test(one, len(samples)) for one in tests[:MOST_TESTS])
    left = f'<p class="none">&hellip; {len(tests) - MOST_TESTS:,} more tests</p>' if len(tests) > MOST_TESTS else ""
    passed = _line("valid tests passed", [_share(one["pass_rate"]) for one in samples])
    hidden = _line("hidden tests", [escape(one["outcome"] or "not run") for one in samples])
    return f'<div class="wide marks"><table>{heads}{lines}{passed}{hidden}</table></div>{left}'


def _test(one: Mapping[str, Any], programs: int) -> str:
    marks = "".join(f"<td>{_mark(one, place)}</td>" for place in range(programs))
    valid = "valid" if one["valid"] else "invalid"
    kind = "passed" if one["valid"] else "failed"
    return (
        f"<tr><td><code>{escape(one['text'])}</code></td><td>{one['set'] + 1}</td>"
        f'<td><span class="verdict {kind}">{valid}</span></td>{marks}</tr>'
    )


def _mark(one: Mapping[str, Any], place: int) -> str:
    if not one["valid"]:
        return ""
    return '<span class="down">caught</span>' if place in one["catches"] else "passes"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"<tr><th>{name}</th><td></td><td></td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _number(place: int, chosen: int) -> str:
    return f"sample {place + 1}{', chosen' if place == chosen else ''}"


def _share(rate: float | None) -> str:
    return "&ndash;" if rate is None else f"{rate:.0%}"


def _unread(row: Mapping[str, Any]) -> str:
    """Sets in which there is no test."""
    known = {one["set"] for one in row.get("tests") or []}
    texts = [text for place, text in enumerate(row.get("written") or []) if place not in known]
    items = "".join(_pre(text) for text in texts)
    return f"<details><summary>{len(texts)} sets without a test</summary>{items}</details>" if texts else ""


def _pre(text: str) -> str:
    return f"<pre>{escape(text[:MOST_CHARACTERS]) or '(empty)'}</pre>"
