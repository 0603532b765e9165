"""Options of +stage=infer that cannot work together are reported before anything starts."""

from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError

DRAWN = ["infer.decoding=sample", "infer.samples=32"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["infer.temperature=0.5"], "infer.decoding: draws nothing, so that temperature would have no effect"),
        (["infer.decoding=beam", "infer.top_p=0.9"], "infer.decoding: draws nothing, so that top_p"),
        (["infer.beams=3"], "infer.beams: only a beam search keeps beams"),
        (["infer.decoding=beam", "infer.beams=1"], "infer.beams: one beam is greedy decoding"),
        (["infer.decoding=beam", "infer.stop=[x]"], "infer.stop: a beam search ends"),
        (["infer.decoding=beam", "infer.samples=5"], "infer.samples: a search with 4 beams"),
        (["infer.samples=2"], "infer.samples: greedy completions"),
        (["infer.decoding=sample", "infer.samples=2", "infer.verify=false"], "infer.samples: without a verifier"),
        (["infer.max_attempts=2", "infer.verify=false"], "infer.max_attempts: without a verifier"),
        (["infer.vote=2", "infer.verify=false"], "infer.vote: programs vote by what they return"),
        (["infer.vote=2", "infer.max_attempts=2"], "infer.vote: a retry has seen"),
        (["infer.vote=-1"], "infer.vote"),
        (["infer.adapt=lora"], "infer.adapt: an adapter learns from programs that were drawn"),
        ([*DRAWN, "infer.adapt=lora", "infer.samples=7"], "infer.samples: each round draws at least one"),
        ([*DRAWN, "infer.adapt=lora", "infer.verify=false"], "infer.adapt: without a verifier"),
        ([*DRAWN, "infer.adapt=lora", "infer.max_attempts=2"], "infer.adapt: a retry follows a verdict"),
        ([*DRAWN, "infer.adapt_rounds=6"], "infer.adapt_rounds: nothing learns"),
        ([*DRAWN, "infer.adapt=lora", "engine=server"], "infer.adapt: another process has the weights"),
        ([*DRAWN, "infer.adapt=lora", "model.quantization=4bit"], "infer.adapt: quantized weights"),
        ([*DRAWN, "infer.adapt=lora", "data=edits", "environment=edits"], "infer.adapt: the environment decides"),
        ([*DRAWN, "infer.adapt=lora", "data=problems", "environment=reasoning"], "infer.adapt: "),
        (["infer.output=-"], "infer.output: has to be a file"),
        (["infer.output=a.jsonl.gz"], "infer.output: is written as plain text"),
        (["infer.input=a.jsonl", "infer.output=./a.jsonl"], "infer.output: is the input"),
        (["infer.decoding=greedily"], "infer.decoding: not allowed"),
        (["infer.stop=['']"], "infer.stop: an empty text"),
        (["parallel=ddp"], "parallel.strategy: +stage=infer runs in one process"),
    ],
)
def test_what_cannot_work_is_refused(words, told):
    with pytest.raises(InputError) as fault:
        compose(["+stage=infer", *words])
    assert told in str(fault.value)


def test_the_options_exist_under_their_stage_alone():
    with pytest.raises(InputError, match="exists only under .stage=infer"):
        compose(["+stage=evaluate", "infer.samples=2"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], ""),
        (["infer.input=-"], ""),
        (["infer.input={0}/in.jsonl", "infer.output={0}/new/out.jsonl"], ""),
        (["infer.input=nowhere.jsonl"], "infer.input: not there"),
        (["infer.input={0}"], "infer.input: not a regular file"),
        (["infer.output={0}"], "infer.output: not a regular file"),
        (["infer.output={0}/in.jsonl/out.jsonl"], "infer.output: cannot be written"),
    ],
)
def test_files_of_an_inference(words: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").touch()
    found = missing_artifacts(compose(["+stage=infer", *(word.format(tmp_path) for word in words)]).config)
    assert [str(need.problem).splitlines()[0] for need in found] == [told] * bool(told)


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
