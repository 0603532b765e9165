"""From a folder to an engine: how a run's own checkpoint is loaded, and what is rejected before anything heavy."""

import shutil

import pytest
from input_rows import puzzle

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.sealed import seal
from rlvr_exp.episodes.types import TRUNCATED
from rlvr_exp.inference import load
from rlvr_exp.models.parameters import weights_hash
from rlvr_exp.verifiers.base import Direct


class Silent(Direct):
    name, version = "silent", "1"

    def judge(self, request):
        return TRUNCATED


@pytest.mark.slow
def test_a_plain_folder_answers_as_the_embedded_policy(tmp_path):
    shutil.copytree(EMBEDDED_MODELS / "tiny", tmp_path / "copy")
    asked = puzzle("a")
    assert load(tmp_path / "copy", model=compose(["+stage=infer"]).config.model).solve(asked) == load().solve(asked)
    assert load(tmp_path / "copy").solve(asked).text


def test_a_checkpoint_of_a_run_is_loaded_as_the_run_had_it(tmp_path):
    (tmp_path / "config.yaml").write_text(to_yaml(compose(["+stage=sft", "model.max_completion_tokens=7"])))
    folder = tmp_path / "checkpoints" / "last"
    shutil.copytree(EMBEDDED_MODELS / "tiny", folder)
    found = load(folder).solve(puzzle("a"))
    assert found.completion.tokens <= 7


@pytest.mark.parametrize(
    ("path", "options", "told"),
    [
        ("nowhere", Infer(), "model.path: no checkpoint is there"),
        ("", Infer(decoding="sample", samples=4), "samples: without a verifier nothing would choose"),
        ("", Infer(max_attempts=2), "max_attempts: without a verifier"),
    ],
)
def test_what_cannot_work_is_refused(path, options, told):
    with pytest.raises(InputError) as fault:
        load(path, options)
    assert told in str(fault.value)


def test_a_damaged_checkpoint_is_named_and_refused(tmp_path):
    folder = tmp_path / "step_000001"
    shutil.copytree(EMBEDDED_MODELS / "tiny", folder)
    seal(folder, {"step": 1})
    assert load(folder).solve(puzzle("a")).text
    weights = min(folder.glob("*.safetensors"))
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    with pytest.raises(InputError, match=f"{weights.name}: does not hold what was written"):
        load(folder)


def test_a_verifier_that_is_given_judges():
    assert load("", Infer(verify=False), verifier=Silent()).solve(puzzle("a")).verdict is not None


def test_weights_are_told_apart_by_one_update():
    policy = load().policy
    before = weights_hash(policy.model)
    assert before == weights_hash(load().policy.model)
    weight = next(policy.model.parameters())
    weight.data.add_(1e-3)
    assert weights_hash(policy.model) != before
