"""Every error of checkpoints, inference and rescoring is in the documentation, with its remedy."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "rlvr_exp"
PAGES = ("checkpoints", "inference", "rescore", "verify")
FILES = {
    "core": ("sealed",),
    "config": ("infer", "run", "needs"),
    "inference": ("engine", "loading"),
    "records": ("directory", "fingerprint", "resumable_jsonl", "rollout_files"),
    "launch": ("inference_inputs", "resume"),
    "training": ("checkpoints", "loop", "selection"),
    "stages": ("infer", "rescore"),
    "stages/shared": ("verifier_match", "fit"),
}
SOURCES = tuple(f"{room}/{name}.py" for room, names in FILES.items() for name in names)
RAISED = {"InputProblem": 1, "Fault": 0, "GuardStop": 0, "Interrupted": 0, "_wrong": 1, "_problem": 0}
"""What makes an error, and which argument says what is wrong."""
SHORTEST, COMPARED = 8, 28
"""Characters of a message without its figures that tell it from others."""
ELSEWHERE = (
    *("evaluate.baseline", "verify.input", "verify.output"),
    *("compare.runs", "report.run", "report.beside", "optimizer", "prepare", "benchmark.python"),
    *("engine", "engine.api_key_env", "evaluation.vote", "attempts", "resume", "runs"),
)
"""What config/needs.py and config/run.py say of other stages."""


def messages(source: str) -> Iterator[tuple[str, str]]:
    """(where, the longest stretch of the message without figures) of each error that a file can raise."""
    for function in ast.walk(ast.parse((ROOT / source).read_text())):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
                if name in RAISED and len(node.args) > RAISED[name]:
                    told = node.args[RAISED[name]]
                    told = assigned(function, told) if isinstance(told, ast.Name) else told
                    where = ast.unparse(node.args[0]) if RAISED[name] else ""
                    if (text := longest(told)) and where.strip("'\"") not in ELSEWHERE:
                        yield f"{source}:{node.lineno}", text


def assigned(function: ast.FunctionDef, name: ast.Name) -> ast.expr | None:
    """The last value assigned to a variable before its use."""
    for node in sorted(ast.walk(function), key=lambda node: -getattr(node, "lineno", 0)):
        if isinstance(node, ast.Assign) and node.lineno <= name.lineno:
            target = node.targets[0]
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            for place, value in pairs:
                if isinstance(place, ast.Name) and place.id == name.id:
                    return value
    return None


def longest(told: ast.expr | None) -> str:
    """The longest text of a literal, or of an f-string's literal parts; '' for text built elsewhere."""
    parts = [node.value for node in ast.walk(told or ast.Constant("")) if isinstance(node, ast.Constant)]
    found = max((plain(part) for part in parts if isinstance(part, str)), key=len, default="")
    if len(found) > COMPARED:
        found = found[:COMPARED].rpartition(" ")[0].strip(" .,:;")
    return found if len(found) >= SHORTEST else ""


def plain(text: str) -> str:
    return re.sub(r"[`\s]+", " ", text).strip(" .,:;")


DOCUMENTED = plain(" ".join((ROOT / "docs" / f"{page}.md").read_text() for page in PAGES))


@pytest.mark.parametrize("source", SOURCES)
def test_each_message_has_its_line(source: str) -> None:
    assert [(place, text) for place, text in messages(source) if text not in DOCUMENTED] == []


def test_messages_are_found() -> None:
    """The test above would hold for files in which none is seen."""
    assert sum(len(list(messages(source))) for source in SOURCES) > 60
