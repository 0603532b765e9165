"""What +stage=infer refuses next to an environment of several turns."""

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError

PROBLEMS = ["+stage=infer", "data=problems"]


@pytest.mark.parametrize("environment", ["reasoning", "adversarial"])
@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("infer.input=rows.jsonl", "data.path=FILE"),
        ("infer.max_attempts=2", "or drop it"),
        ("infer.vote=1", "environment=single_turn"),
        ("infer.cascade=model", ""),
        ("infer.decoding=beam", "infer.decoding=greedy"),
    ],
)
def test_what_has_no_meaning_in_stages_is_refused(environment, word, remedy) -> None:
    with pytest.raises(InputError) as fault:
        compose([*PROBLEMS, f"environment={environment}", word])
    told = str(fault.value)
    assert word.partition("=")[0] in told and remedy in told, told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["environment=adversarial", "infer.max_attempts=2"], "environment.attempts=N, or drop it"),
        (["environment=reasoning", "infer.max_attempts=2"], "infer.samples=N, or drop it"),
        (
            ["environment=adversarial", "environment.attempts=2", "infer.verify=false"],
            "environment.attempts: without a verifier nothing decides what to try again",
        ),
        (["environment=adversarial", "infer.samples=8"], "infer.samples: greedy completions"),
        (
            ["environment=adversarial", "infer.decoding=sample", "infer.samples=8", "infer.verify=false"],
            "infer.samples: without a verifier nothing would choose among them",
        ),
        (["environment=adversarial", "engine=server", "engine.url=http://a/v1"], "engine: a server holds one model"),
    ],
)
def test_combinations_that_cannot_work_are_refused(words, told) -> None:
    with pytest.raises(InputError) as fault:
        compose([*PROBLEMS, *words])
    assert told in str(fault.value)


@pytest.mark.parametrize(
    "words",
    [
        ["environment=reasoning", "infer.verify=false"],
        ["environment=adversarial", "infer.decoding=sample", "infer.samples=8", "environment.tests=8"],
        ["environment=adversarial", "infer.verify=false"],
        ["environment=adversarial", "environment.attempts=2"],
    ],
)
def test_what_can_be_asked_is_taken(words) -> None:
    assert compose([*PROBLEMS, *words]).config.infer is not None
