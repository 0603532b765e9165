"""verifier.prune with the real Dafny: the verdict, the revised text, the cost, and the answers that are not pruned."""

from collections.abc import Iterator

import pytest
from dafny_judge import Judge, of_dafny, told
from fake_cascade import HEAD, LOOP, PROVED, SPEC

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.domains.dafny.tool import Tool

GIVEN = HEAD + SPEC + LOOP
WRONG = PROVED.replace("2 * i\n", "2 * i && i != 3  // doubles\n    invariant i < n\n    decreases i\n")


@pytest.fixture(scope="module")
def pruning(dafny: Tool) -> Iterator[Judge]:
    with of_dafny(prune=True) as verifier:
        yield Judge(verifier)


def test_annotations_that_fail_are_dropped_before_the_last_verdict(pruning: Judge, judge: Judge) -> None:
    candidate = HEAD + SPEC + WRONG.replace("r + 2;", "r + 2;\n    assert r > 100;")
    assert told(judge(GIVEN, candidate, protect="program")) == "verify"
    verdict = pruning(GIVEN, candidate, protect="program")
    assert verdict.outcome == "passed" and verdict.score == 1
    assert verdict.log == "pruned: invariant i < n; assert r > 100; decreases i; && i != 3"
    assert verdict.revised == HEAD + SPEC + PROVED.replace("2 * i\n", "2 * i // doubles\n")
    assert verdict.measures["pruned"] == 1 and verdict.measures["dropped_annotations"] == 4
    assert verdict.measures["pruning_runs"] == 4 and 0 < verdict.measures["pruning_seconds"] < verdict.seconds
    assert pruning(GIVEN, verdict.revised, protect="program").log == ""


def test_an_answer_that_pruning_does_not_prove_keeps_its_own_verdict(pruning: Judge, judge: Judge) -> None:
    candidate = HEAD + SPEC + LOOP.replace("while i < n\n", "while i < n\n    invariant i < n\n")
    verdict, own = (one(GIVEN, candidate, protect="program") for one in (pruning, judge))
    assert (verdict.outcome, verdict.bucket, verdict.log) == ("failed", "verify", own.log) and not verdict.revised
    assert (verdict.measures["pruned"], verdict.measures["pruning_runs"]) == (0, 1) and own.measures == {}


def test_annotations_of_the_kept_code_stay(pruning: Judge) -> None:
    kept = HEAD + SPEC + LOOP.replace("while i < n\n", "while i < n\n    invariant i < n\n")
    candidate = HEAD + SPEC + WRONG
    assert told(pruning(HEAD + SPEC, candidate, keep=kept)) == "verify"
    verdict = pruning(HEAD + SPEC, candidate, keep=GIVEN)
    assert told(verdict) == "passed", verdict


def test_a_writers_body_is_not_pruned(pruning: Judge) -> None:
    verdict = pruning(GIVEN, HEAD + SPEC + WRONG, protect="specification")
    assert told(verdict) == "verify" and verdict.measures == {}


def test_no_guard_is_pruned(pruning: Judge) -> None:
    changed = HEAD + SPEC + PROVED.replace("i + 1", "i + 1 + 0")
    assert told(pruning(GIVEN, changed, protect="program")) == "program-changed"
    assumed = HEAD + SPEC + WRONG.replace("r := 0;", "r := 0; assume false;")
    assert pruning(GIVEN, assumed, protect="program").outcome == "rejected"


@pytest.mark.parametrize("stage", ["grpo", "sft", "collect", "validate", "verify", "cascade"])
def test_only_answers_of_a_policy_are_pruned(stage: str) -> None:
    words = [f"+stage={stage}", "data=dafny", "verifier=dafny", "verifier.prune=true"]
    found = compose_lenient(words[:1] + words[3:] if stage == "cascade" else words).problems
    assert "verifier.prune" in [one.where for one in found]


@pytest.mark.parametrize(
    "words", [["+stage=evaluate"], ["+stage=infer"], ["+stage=evaluate", "evaluate.cascade=model"]]
)
def test_evaluation_and_inference_may_prune(words: list[str]) -> None:
    assert compose_lenient([*words, "data=dafny", "verifier.prune=true"]).problems == ()
