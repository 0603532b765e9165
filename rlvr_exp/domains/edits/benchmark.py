"""`benchmark=ast_grep`: the verifier against ast-grep's public rule collections, with all rules that behave otherwise.

A collection is a folder (docs/verifiers.md names them). A rule that only searches is tried with a fix added: if the text
stays unchanged, nothing matched.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.schema import Config
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.core.files import write_text
from rlvr_exp.domains.edits import schema
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.schema import ENDINGS, LANGUAGES, ActionFault, read_yaml
from rlvr_exp.domains.edits.verifier import AstGrep
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict

_MARK = "edited"
_REFUSED = ("parse", "resolve")


@dataclass(frozen=True)
class RuleCheck:
    """The result for one rule. `kind`: the count that it belongs to; `fault`: the rule contradicts its collection."""

    kind: str
    name: str
    detail: str = ""
    fault: bool = False


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """The exceptions, a line each, and the counts; the catalogue's rewrites become `rows.jsonl` for +stage=verify.

    Raises:
        GuardStop: a rule that ast-grep takes contradicts its collection.
    """
    collection, folder = config.benchmark.collection, Path(config.benchmark.path)
    if collection == "catalog":
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in catalog_rows(folder))
        write_text(context.directory / "rows.jsonl", "".join(lines))
    findings = list(_CHECKS[collection](folder, config.sandbox))
    counts = dict(sorted(Counter(found.kind for found in findings).items()))
    shown = [
        f"{'FAULT ' if found.fault else ''}{found.kind}: {found.name}: {found.detail}"
        for found in findings
        if found.detail
    ]
    text = "\n".join([*shown, *(f"{count:5} {kind}" for kind, count in counts.items())])
    if any(found.fault for found in findings):
        raise GuardStop(text)
    return text, counts


def catalog_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """A row for each catalogue rule that documents a text before and after."""
    for entry in _catalog(folder):
        if entry["check"] in ("fix-exact", "fix-same-but-blanks"):
            texts = {"before": "\n".join(entry["diff_before"]), "after": "\n".join(entry["diff_after"])}
            yield {"id": _name(entry), "language": entry["language"], **texts, "action": {"rule_yaml": entry["rule"]}}


def check_catalog(folder: Path, sandbox: Sandbox) -> Iterator[RuleCheck]:
    """Each rule's documented result: its fix, or that it matches its example."""
    with AstGrep(sandbox) as exact, AstGrep(sandbox, compare="syntax") as by_tree:
        for entry in _catalog(folder):
            name, documented = _name(entry), entry["check"]
            if documented in ("fix-exact", "fix-same-but-blanks"):
                verdict = _rewritten(exact if documented == "fix-exact" else by_tree, entry)
                good = verdict.outcome == "passed"
                yield RuleCheck(f"{documented}, {_said(verdict)}", name, "" if good else verdict.log, not good)
            elif documented in ("match", "no-match"):
                yield _searched(exact, entry)
            else:
                yield from _unusual(exact, entry)


def check_essentials(folder: Path, sandbox: Sandbox) -> Iterator[RuleCheck]:
    """Every rule matches its invalid snippets and none of its valid ones."""
    cases = {case["id"]: case for case in map(_plain_yaml, sorted(folder.glob("tests/*/*.yml")))}
    with AstGrep(sandbox) as verifier:
        for file in sorted(folder.glob("rules/**/*.yml")):
            for config in read_yaml(file.read_text(encoding="utf-8")):
                config.pop("ast-grep-essentials", None)
                case = cases.get(config["id"], {})
                texts = {True: case.get("invalid") or [], False: case.get("valid") or []}
                yield _rule_on_texts(verifier, config, config["id"], texts)


def check_antislop(folder: Path, sandbox: Sandbox) -> Iterator[RuleCheck]:
    """Every sample is matched by a rule of its name and language, every valid sample by none."""
    with AstGrep(sandbox) as verifier:
        for file in sorted(folder.glob("rules/*.yml")):
            configs = read_yaml(file.read_text(encoding="utf-8"))
            for config in configs:
                [verdict] = _tried(verifier, config, ["x"])
                refused = verdict.bucket in _REFUSED
                yield RuleCheck("rule refused" if refused else "rule", config["id"], verdict.log * refused, refused)
            for sample in sorted(folder.glob(f"test_samples/**/{file.stem}.*")):
                yield _sample(verifier, configs, sample, folder)


def check_schema(folder: Path, sandbox: Sandbox) -> Iterator[RuleCheck]:
    """Our table of keys against ast-grep's published rule schema, `schemas/rule.json`."""
    published = json.loads((folder / "schemas" / "rule.json").read_text(encoding="utf-8"))
    parts = published["$defs"]
    relation = {*schema.MATCHERS, "stopBy", "field"}
    pairs: dict[str, tuple[set[str], set[str]]] = {
        "rule file": ({*schema.ACTING, *schema.SILENT, "language"}, set(published["properties"])),
        "matchers": (set(schema.MATCHERS), set(parts["SerializableRule"]["properties"])),
        "relations": (relation, set(parts["Relation"]["properties"])),
        "strictness": (set(schema.STRICTNESS), {item["const"] for item in parts["Strictness"]["oneOf"]}),
    }
    for name, (needed, further) in schema.TRANSFORMS.items():
        pairs[name] = ({*needed, *further}, set(parts[name.capitalize()]["properties"]))
        pairs[f"{name}, needed"] = (set(needed), set(parts[name.capitalize()]["required"]))
    for name, (ours, theirs) in pairs.items():
        differ = ours ^ theirs
        yield RuleCheck("table differs" if differ else "table equal", name, ", ".join(sorted(differ)), bool(differ))


def _catalog(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "extracted.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _name(entry: dict[str, Any]) -> str:
    return f"{entry['language']}/{entry['id']}"


def _rewritten(verifier: AstGrep, entry: dict[str, Any], action: dict[str, Any] | None = None) -> Verdict:
    before, after = "\n".join(entry["diff_before"]), "\n".join(entry["diff_after"])
    problem = AstGrepProblem(entry["language"], before, after)
    return _judge(verifier, problem, action or {"rule_yaml": entry["rule"]})


def _searched(verifier: AstGrep, entry: dict[str, Any]) -> RuleCheck:
    verdicts = []
    for config in read_yaml(entry["rule"]):
        verdicts += _tried(verifier, {"language": entry["language"], **config}, entry["examples"])
    matched, refused = any(map(_matched, verdicts)), [v.log for v in verdicts if v.bucket in _REFUSED]
    good = not refused and matched == (entry["check"] == "match")
    kind = "refused" if refused else "matched" if matched else "not matched"
    return RuleCheck(f"{entry['check']}, {kind}", _name(entry), "" if good else "; ".join(refused) or kind, not good)


def _unusual(verifier: AstGrep, entry: dict[str, Any]) -> Iterator[RuleCheck]:
    """Rules that do not load unchanged, commands, and fixes documented otherwise than they work."""
    name, documented = _name(entry), entry["check"]
    actions = [{"cli": command} for command in entry["commands"]] if documented == "no-yaml" else [None]
    for action in actions:
        if (entry["diff_before"] and entry["has_fix"]) or (action and entry["diff_before"]):
            verdict = _rewritten(verifier, entry, action)
            yield RuleCheck(f"{documented}, {_said(verdict)}", name, verdict.log.replace("\n", " ") or "as documented")
        elif entry["rule"]:
            try:
                found = _searched(verifier, entry)
            except ActionFault as fault:
                found = RuleCheck("", name, str(fault))
            yield RuleCheck(
                f"{documented}, searched", name, found.detail or "loads with the folder's language and matches"
            )
        else:
            yield RuleCheck(f"{documented}, nothing to rewrite", name, "a command or a text without a rewrite")


def _rule_on_texts(verifier: AstGrep, config: dict[str, Any], name: str, texts: dict[bool, list[str]]) -> RuleCheck:
    wrong = []
    for expected, snippets in texts.items():
        for verdict in _tried(verifier, config, snippets):
            if verdict.bucket in _REFUSED:
                reserved = "reserved characters" in verdict.log
                return RuleCheck("rule refused" + ", a utility's name" * reserved, name, verdict.log)
            if _matched(verdict) != expected:
                wrong.append("missed" if expected else "matched though valid")
    cases = sum(map(len, texts.values()))
    kind = "rule wrong" if wrong else "rule right" if cases else "rule without cases"
    return RuleCheck(kind, name, ", ".join(wrong), bool(wrong))


def _sample(verifier: AstGrep, configs: list[dict[str, Any]], sample: Path, folder: Path) -> RuleCheck:
    ours = [config for config in configs if ENDINGS[LANGUAGES[config["language"].lower()]] == sample.suffix[1:]]
    text = sample.read_text(encoding="utf-8")
    matched = any(_matched(verdict) for config in ours for verdict in _tried(verifier, config, [text]))
    expected = sample.parent.name != "valid"
    kind = f"sample {'matched' if matched else 'not matched'}, as it should be"
    if matched != expected:
        return RuleCheck("sample wrong", str(sample.relative_to(folder)), "matched" if matched else "not matched", True)
    return RuleCheck(kind, sample.name)


def _tried(verifier: AstGrep, config: dict[str, Any], texts: list[str]) -> list[Verdict]:
    """The rule with an added fix on each text, each expected unchanged: `passed` means that nothing matched."""
    action = {"rule": {key: part for key, part in config.items() if key != "fix"} | {"fix": _MARK}}
    requests = [_request(AstGrepProblem(config["language"], text, text), action) for text in texts]
    return verifier.verify(requests)


def _matched(verdict: Verdict) -> bool:
    return verdict.bucket == "wrong_answer"


def _judge(verifier: AstGrep, problem: AstGrepProblem, action: dict[str, Any]) -> Verdict:
    return verifier.verify([_request(problem, action)])[0]


def _request(problem: AstGrepProblem, action: dict[str, Any]) -> Request:
    return Request(problem, Candidate(json.dumps(action, ensure_ascii=False)))


def _said(verdict: Verdict) -> str:
    return verdict.bucket or verdict.outcome


def _plain_yaml(file: Path) -> dict[str, Any]:
    """A file of a collection: trusted, and larger than an action may be; every scalar is a string."""
    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


_CHECKS: dict[str, Callable[[Path, Sandbox], Iterator[RuleCheck]]] = {
    "catalog": check_catalog,
    "essentials": check_essentials,
    "antislop": check_antislop,
    "schema": check_schema,
}
