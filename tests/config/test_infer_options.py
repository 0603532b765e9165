"""Options of inference that cannot work are reported before anything starts."""

from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError


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
