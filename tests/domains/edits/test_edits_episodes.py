"""Edits in steps: the next prompt, the end of an episode, the credit of turns, and +stage=infer with environment=edits."""

import json
import subprocess
from pathlib import Path

import pytest
from endpoint import Endpoint, serving
from program import ENVIRONMENT, PROGRAM
from told_episode import in_turn, told

pytest.importorskip("ast_grep_py")

from rlvr_exp.config.compose import compose
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.edits.environment import Edits as EditSteps
from rlvr_exp.domains.edits.options import EditPrompt
from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.domains.edits.verifier import AstGrep
from rlvr_exp.episodes.episode import Draws, Episode
from rlvr_exp.episodes.types import RewardBreakdown
from rlvr_exp.tasks.base import Domain
from rlvr_exp.verifiers.base import KeepsOutputs

ROW = {"id": "t", "instruction": "b, then d", "before": "a = c\n", "after": "b = d\n", "split": "train"}


def swap(pattern: str, rewrite: str) -> str:
    return json.dumps({"pattern": pattern, "rewrite": rewrite})


FIRST, SECOND = swap("a", "b"), swap("c", "d")


@pytest.fixture
def domain(tmp_path) -> Edits:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    return Edits(path=str(tmp_path))


def played(verifier: AstGrep, domain: Edits, answers: list[list[str]], steps: int = 4) -> Episode:
    """An episode in which each sample gives its answers in turn."""
    environment, kept = EditSteps(domain, steps=steps), KeepsOutputs(verifier, "environment", remember=False)
    (task,) = domain.splits()["train"]
    return told(environment, kept, in_turn(answers, "t"), task, Draws(0, "rollout"), range(len(answers)))


def test_each_action_is_shown_the_text_that_those_before_it_made(exact, domain) -> None:
    done = played(exact, domain, [[FIRST, SECOND, "done"]])
    assert [turn.prompt.split("\n")[1] for turn in done.turns] == ["a = c", "b = c", "b = d"]
    assert [turn.completion.correct for turn in done.turns] == [False, True, True]
    assert [turn.parent for turn in done.turns] == [None, 0, 1]
    assert len({turn.key for turn in done.turns}) == 3


def tagged(action: str, think: str = "", update: str = "") -> str:
    return f"<think>\n{think}\n</think>\n<action>\n{action}\n</action>\n<state_update>\n{update}\n</state_update>"


def test_the_update_of_a_step_is_the_state_of_the_next(exact, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    domain = Edits(path=str(tmp_path), prompt=EditPrompt(style="instruct", answer="tags"))
    answers = [tagged(FIRST, "a first", "a is b"), tagged(SECOND, "now d"), tagged("done")]
    done = played(exact, domain, [answers])
    states = [turn.prompt.partition("<state>")[2].partition("</state>")[0].strip() for turn in done.turns]
    assert states == ["", "a is b", "a is b"]
    noted = [domain.noted(turn.completion.task, turn.completion.text) for turn in done.turns]
    first = {"think": "a first", "state_update": "a is b"}
    assert noted == [first, {"state": "a is b", "think": "now d"}, {"state": "a is b"}]


def test_plain_answers_leave_the_state_and_keep_their_thoughts(exact, domain) -> None:
    answer = f"<think>\nfirst a\n</think>\n{FIRST}"
    done = played(exact, domain, [[answer, "so, d.</think>" + SECOND, "done"]])
    assert all("<state>" not in turn.prompt for turn in done.turns)
    noted = [domain.noted(turn.completion.task, turn.completion.text) for turn in done.turns]
    assert noted == [{"think": "first a"}, {"think": "so, d."}, {}]


@pytest.mark.parametrize(
    ("answers", "steps", "turns", "correct"),
    [
        ([FIRST, "done"], 4, 2, False),
        (["done"], 4, 1, False),
        ([FIRST, SECOND], 2, 2, True),
        ([FIRST, SECOND, swap("d", "e"), "done"], 4, 4, False),
        (["no action"], 4, 1, False),
        ([FIRST, '{"rule": {"kind": "no_such_kind"}, "fix": "x"}'], 4, 2, False),
        ([swap("nothing_here", "x"), FIRST, SECOND, "done"], 4, 4, True),
    ],
)
def test_an_episode_ends_by_done_by_its_limit_or_by_an_answer_without_a_text(
    exact, domain, answers, steps: int, turns: int, correct: bool
) -> None:
    done = played(exact, domain, [answers], steps)
    assert len(done.turns) == turns and EditSteps(domain).result(done).correct == correct


def test_all_actions_of_a_branch_are_credited_with_what_its_end_earns(exact, domain) -> None:
    done = played(exact, domain, [[FIRST, SECOND, "done"], ["done"], [SECOND, "done"]])
    environment = EditSteps(domain)
    ends = list(environment.rewarded(done))
    earned = {index: RewardBreakdown(float(done.turns[index].completion.correct)) for index in ends}
    credited = environment.credit(done, earned)
    assert [credited[index].total for index in range(len(done.turns))] == [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    assert environment.groups(done) == [[0, 1, 2], [3, 4], [5]]
    assert environment.metrics([done]) == {"episode/steps": 2.0, "episode/done": 1.0}


def test_what_an_earlier_step_has_changed_is_held_against_the_last_text(tmp_path) -> None:
    """The tests hold of it, and the step before the last has changed what the wanted text leaves as it was."""
    before = "def f(a):\n    return a\n\ndef g(b):\n    return b\n"
    tests = "from solution import f\n\ndef test_f():\n    assert f(-1) == 1\n"
    row = {"id": "t", "instruction": "Make it positive.", "before": before, "split": "train", "tests": tests}
    row |= {"after": before.replace("return a", "return abs(a)")}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    right, beside = swap("return a", "return abs(a)"), swap("return b", "return 0")
    domain = Edits(path=str(tmp_path))
    with AstGrep(Sandbox(workers=1), untouched="wanted") as strict:
        done = played(
            strict, domain, [[beside, right, "done"], [right, "done"], [beside, swap("0", "b"), right, "done"]]
        )
    ends = EditSteps(domain).rewarded(done)
    correct = {done.depth(index) + 1: done.turns[index].completion.correct for index in ends}
    assert correct == {2: True, 3: False, 4: True}


def test_tasks_that_are_not_done_in_steps_are_refused() -> None:
    class Words(Domain):
        name = "words"

        def splits(self):
            return {}

        def task_prompt(self, task):
            return ""

        def parse(self, completion, task):
            return None

    with pytest.raises(InputError, match="not done in steps"):
        EditSteps(Words())


COMMAND = [*PROGRAM, "+stage=infer", "data=edits", "environment=edits", "sandbox.workers=1"]
ROWS = [
    {"id": "two", "instruction": "Make x 3 and y 4.", "before": "x = 1\ny = 2\n", "after": "x = 3\ny = 4\n", "split": "test"},
    {"id": "lost", "instruction": "Make x 5.", "before": "x = 9\n", "after": "x = 5\n", "split": "test"},
]  # fmt: skip


def answer(prompt: str, seed: object) -> str:
    """Of the first row a rule at a time, then `done`; of the second what is no action."""
    if "x = 9" in prompt:
        return "I cannot."
    for old, new in (("x = 1", "x = 3"), ("y = 2", "y = 4")):
        if f"{old}\n" in prompt:
            return f"```json\n{json.dumps({'pattern': old, 'rewrite': new})}\n```"
    return "```json\ndone\n```"


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def test_the_answer_is_what_all_steps_have_made(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    words = ["data.path=rows.jsonl", "data.prompt.style=instruct", "run.dir=run", "infer.output=out.jsonl"]
    with serving(Endpoint(text=answer)) as endpoint:
        done = program(tmp_path, *words, "engine=server", f"engine.url={endpoint.url}")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["id"]: row for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())}
    two, lost = rows["two"], rows["lost"]
    assert (two["outcome"], two["edited"], two["program"], two["attempt"]) == ("passed", "x = 3\ny = 4\n", "done", 3)
    assert [(one["attempt"], one["outcome"]) for one in two["earlier"]] == [(1, "failed"), (2, "passed")]
    assert "x = 1" in two["earlier"][0]["text"] and "y = 2" in two["earlier"][1]["text"]
    assert (lost["outcome"], lost["bucket"], lost["edited"], lost["earlier"]) == ("failed", "parse", None, [])


@pytest.mark.slow
def test_the_embedded_policy_takes_as_many_steps_as_it_may(tmp_path: Path) -> None:
    done = program(tmp_path, "infer.tasks=4", "environment.steps=2", "infer.split=dev", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (tmp_path / "run" / "answers.jsonl").read_text().splitlines()]
    assert len(rows) == 4 and all(len(row["earlier"]) == row["attempt"] - 1 < 2 for row in rows)
    assert any(row["edited"] for row in rows)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["infer.max_attempts=2"], "infer.max_attempts: the environment decides about further turns"),
        (["infer.verify=false"], "infer.verify: has no meaning"),
        (["infer.decoding=beam"], "infer.decoding: episodes of several turns are sampled or greedy"),
    ],
)
def test_what_has_no_meaning_in_steps_is_refused(words: list[str], told: str) -> None:
    with pytest.raises(InputError) as fault:
        compose([*COMMAND[len(PROGRAM) :], *words])
    assert told in str(fault.value)
