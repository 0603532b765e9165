"""Tasks whose answer is a whole program: DafnyBench by its protocol, the vericoding benchmark, their splits and their rows."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from dafny_samples import MAX as MAX_METHOD
from dafny_samples import UP as TRUTH
from dafny_samples import write_rows
from surface_programs import MAX, SUM

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.given import given_risks
from rlvr_exp.domains.dafny.load import load, row_of, survey
from rlvr_exp.domains.dafny.options import DafnyPrompt
from rlvr_exp.domains.dafny.prepare import rows
from rlvr_exp.domains.dafny.problem import DafnyExample, DafnyProblem
from rlvr_exp.domains.dafny.splits import alike
from rlvr_exp.domains.dafny.tasks import DafnyDomain, TwoStage
from rlvr_exp.domains.dafny.usable import NO_HOLE, OTHER_ROLE, pairs_of

STRIPPED = TRUTH.replace("    invariant m <= n\n", "").replace("    assert m < n by {\n      assert true;\n    }\n", "")
TORN = TRUTH.replace("    assert m < n by {\n", "")
SPEC = "method Twice(n: int) returns (r: int)\n  ensures r == Double(n)"
PREAMBLE = "function Double(n: int): int { n + n }"
SOLUTION = f"{PREAMBLE}\n// <vc-helpers>\nlemma Same(n: int)\n  ensures n + n == 2 * n\n{{\n}}\n{SPEC}\n{{\n  r := n + n;\n}}\n"
BODY = "{\n  assume {:axiom} false;\n}"


def bench(root: Path, **programs: tuple[str, str]) -> Path:
    for name, texts in programs.items():
        for folder, file, text in zip(
            ("ground_truth", "hints_removed"), (name, f"{name}_no_hints"), texts, strict=True
        ):
            path = root / "DafnyBench" / "dataset" / folder / f"{file}.dfy"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return root


def vericoding(root: Path, *tasks: dict[str, str], solved: tuple[str, ...] = ("A0",)) -> Path:
    usual = {"vc-preamble": PREAMBLE, "vc-helpers": "", "vc-spec": SPEC, "vc-code": BODY, "vc-postamble": ""}
    usual |= {"vc-description": "", "source": "apps", "source-id": "", "qa-near-duplicate-group": ""}
    (root / "jsonl").mkdir(parents=True)
    (root / "vericoded").mkdir()
    lines = [json.dumps(usual | {"id": f"A{number}"} | task) for number, task in enumerate(tasks)]
    (root / "jsonl" / "dafny_tasks.jsonl").write_text("\n".join(lines) + "\n")
    for name in solved:
        (root / "vericoded" / f"{name}_vericoded.dfy").write_text(SOLUTION)
    return root


def test_a_pair_of_dafny_bench_is_one_task_of_the_annotator(tmp_path: Path) -> None:
    domain = DafnyDomain(str(bench(tmp_path, up=(TRUTH, STRIPPED))), unit="program", dev_fraction=0, test_fraction=0)
    (task,) = domain.splits()["train"]
    assert task.id == "up" and task.problem == DafnyProblem(STRIPPED, protect="program")
    assert domain.parse(f"Here:\n```dafny\n{TRUTH}```\n", task).text == TRUTH
    assert [one.id for one in load(tmp_path)] == ["up/Up"], "each method is a task by default"
    (tmp_path / "DafnyBench" / "dataset" / "ground_truth" / "alone.dfy").write_text(MAX)
    found = survey(tmp_path, "program")
    assert [one.id for one in found.examples] == ["up"] and found.left_out == {"alone": "no version without hints"}


def test_a_text_without_hints_that_cannot_be_parsed_is_made_from_the_program(tmp_path: Path) -> None:
    bench(tmp_path, torn=(TRUTH, TORN), up=(TRUTH, STRIPPED))
    torn, up = load(tmp_path, "program")
    assert up.body == STRIPPED and torn.body == STRIPPED
    assert [row["program"] for row in rows(tmp_path, "pairs")] == [STRIPPED, STRIPPED]


def test_a_task_of_vericoding_gives_the_specification_and_takes_a_program(tmp_path: Path) -> None:
    described = {"vc-description": "/* Twice\nas much */"}
    folder = vericoding(tmp_path, described, {})
    solved, unsolved = load(folder)
    assert solved.body == f"// Twice\n// as much\n\n{PREAMBLE}\n\n{SPEC}\n" and solved.gold == SOLUTION
    assert unsolved.gold == "" and unsolved.content == f"{PREAMBLE}\n\n{SPEC}\n"
    domain = DafnyDomain(str(folder), role="writer", dev_fraction=0, test_fraction=0)
    tasks = {task.id: task for task in domain.splits()["train"]}
    assert tasks["A0"].problem == DafnyProblem(solved.body, protect="specification")
    assert tasks["A0"].gold == SOLUTION.strip() and tasks["A1"].gold is None
    assert tasks["A0"].difficulty < tasks["A1"].difficulty == 1.0
    assert [row["candidate"] for row in rows(folder, "pairs")] == [SOLUTION]


@pytest.mark.parametrize("style", ["bare", "instruct"])
def test_the_prompt_shows_the_whole_program(tmp_path: Path, style: str) -> None:
    folder = vericoding(tmp_path, {})
    domain = DafnyDomain(str(folder), role="writer", prompt=DafnyPrompt(style), dev_fraction=0, test_fraction=0)
    (task,) = domain.splits()["train"]
    prompt = domain.task_prompt(task)
    assert f"{PREAMBLE}\n\n{SPEC}\n" in prompt and ("whole program in one code block" in prompt) == (
        style == "instruct"
    )
    assert task.gold is not None and domain.parse(task.gold, task).text == SOLUTION
    assert SOLUTION not in prompt


def test_tasks_with_nothing_to_write_are_left_out(tmp_path: Path) -> None:
    kept, empty, unpromising, assumed, torn = load(
        vericoding(
            tmp_path,
            {},
            {"vc-spec": ""},
            {"vc-spec": "method M()"},
            {"vc-spec": f"{SPEC}\n{BODY}"},
            {"vc-preamble": "Looking at the function"},
        )
    )
    pairs = pairs_of([kept, empty, unpromising, assumed, torn], "writer")
    assert pairs.examples == (kept,)
    assert [pairs.left_out[one.id] for one in (empty, unpromising, assumed)] == [NO_HOLE] * 3
    assert pairs.left_out[torn.id].startswith("cannot be read")
    assert pairs_of([kept], "annotator").left_out == {"A0": OTHER_ROLE}


def test_near_duplicates_by_the_sets_own_mark_stay_together(tmp_path: Path) -> None:
    other = {"vc-preamble": "", "vc-spec": "method Zero() returns (z: bool)\n  ensures !z"}
    group = {"qa-near-duplicate-group": "DupDA00"}
    marked = alike(load(vericoding(tmp_path / "marked", group, other | group, solved=())))
    free = alike(load(vericoding(tmp_path / "free", {}, other, solved=())))
    assert marked["A0"] == marked["A1"] and free["A0"] != free["A1"]


def test_tasks_taken_from_another_set_stay_on_its_side(tmp_path: Path) -> None:
    bench(tmp_path / "bench", Repo_tmp_abc_Up=(TRUTH, STRIPPED), Other=(MAX, MAX), Repo=(SUM, SUM))
    (tmp_path / "eval").mkdir()
    (tmp_path / "eval" / "001-double.dfy").write_text(f"// impl-start\n{SUM}")
    (tmp_path / "notes").mkdir()
    taken = {"source": "dafnybench", "source-id": "Repo_tmp_abc_Up_Twice"}
    human = {"source": "humaneval", "source-id": "humaneval_001_twice", "vc-preamble": "", "vc-spec": MAX.split("{")[0]}
    vericoding(tmp_path / "veri", taken, human, solved=())
    found = survey(tmp_path, "program")
    groups = alike(found.examples)
    assert {one.id.partition("/")[0] for one in found.examples} == {"bench", "eval", "veri"}
    assert groups["veri/A0"] == groups["bench/Repo_tmp_abc_Up"] != groups["bench/Other"]
    evaluated = next(group for name, group in groups.items() if name.startswith("eval/"))
    assert groups["veri/A1"] == evaluated != groups["veri/A0"]
    source = {task.source for tasks in DafnyDomain(str(tmp_path), role="writer").splits().values() for task in tasks}
    assert {"eval", "veri"} <= source


def test_rows_keep_what_a_whole_program_is(tmp_path: Path) -> None:
    whole = DafnyExample("a", "", "", STRIPPED, TRUTH, family="f", whole="annotator", groups=("g",), strength="refresh")
    (tmp_path / "x.jsonl").write_text(json.dumps(row_of(whole)) + "\n")
    assert load(tmp_path) == [replace(whole, source="x.jsonl")]
    (task,) = DafnyDomain(str(tmp_path), dev_fraction=0, test_fraction=0).splits()["train"]
    assert task.problem.strength == "refresh"


@pytest.mark.parametrize(("key", "value"), [("whole", "both"), ("strength", "weak"), ("groups", "g"), ("mutants", [1])])
def test_wrong_values_in_rows_are_named(tmp_path: Path, key: str, value: object) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps(row_of(MAX_METHOD) | {key: value}) + "\n")
    with pytest.raises(InputError, match=f"line 1, {key}"):
        load(tmp_path)


def test_a_cascade_takes_no_whole_programs(tmp_path: Path) -> None:
    whole = DafnyDomain(str(vericoding(tmp_path / "v", {})), role="writer")
    with pytest.raises(InputError, match="data.unit=method"):
        TwoStage(whole, whole)
    methods = DafnyDomain(str(write_rows(tmp_path / "rows", train=(MAX_METHOD,))), role="writer")
    assert TwoStage(methods, methods).example(methods.splits()["train"][0]).id == "max"


def test_levels_that_a_check_finds_are_those_of_the_tasks(tmp_path: Path) -> None:
    domain = DafnyDomain(str(write_rows(tmp_path, train=(MAX_METHOD,))), role="writer")
    (part,) = (task.inputs for task in domain.splits()["train"])
    (task,) = domain.without_golds({}, {part.id: "default"}).splits()["train"]
    assert task.problem.strength == "default" and domain.splits()["train"][0].problem.strength is None


@pytest.mark.parametrize(
    ("declared", "risks"),
    [
        (
            "class C { var f: int -> int; const k: int := 3 }",
            ["class", "constant with an initialiser", "field of a function type"],
        ),
        (
            "codatatype S = Cons(int, t: S)\nfunction F(s: S): nat { 1 }",
            ["codatatype", "function with a subset result"],
        ),
        ("class C { var n: nat }\nfunction F(n: nat): int { 1 }", ["class"]),
        ("class Box<T> { var value: T }", ["class", "generic class"]),
        ("type Empty = x: int | false witness *", ["type that may be empty"]),
        ("const k: int := 3\nfunction F(): nat { 1 }", []),
        ("class", []),
    ],
)
def test_risks_of_given_text_are_named(declared: str, risks: list[str]) -> None:
    assert given_risks(replace(MAX_METHOD, before=f"{declared}\n")) == risks
