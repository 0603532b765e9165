"""Real runs of the program on pretended CUDA devices (`pretend_cuda`), as many as the default suite can afford, and a limit on
how often a run waits for its device and on the kernels that sampling starts."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from rehearsal import NEEDS_COMPILER, SMALL, Rehearsal, completed, python

pytestmark = NEEDS_COMPILER
PER_DECODING_STEP, PER_UPDATE = 4, 122
"""The most synchronisations of host and device: for each token that a batch of rows decodes, and for the rest of a step, of
three passes. Lower them when the code waits less often. FlexAttention, which is not compiled here, causes a third of the rest."""
PER_LAYER, PER_ADAPTED_LAYER = 44, 55
"""The most kernels of a layer of Qwen3 in bfloat16 for each decoded token, without and with LoRA on all its linear layers."""
COUNTED = """
import pretended_library, torch
from peft import LoraConfig, get_peft_model
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rollout_models import tiny_model

def kernels(layers, adapted, tokens):
    model = tiny_model(num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2).bfloat16().cuda()
    if adapted:
        model = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear"))
    keys = [[(0, prompt, sample) for sample in range(4)] for prompt in range(2)]
    before = pretended_library.library.pretend_launches()
    sample_groups(model.eval(), [[5] * 6, [7] * 9], keys, SamplingParams(LogitFilters(), tokens, (-1,)))
    return pretended_library.library.pretend_launches() - before

for adapted in (False, True):
    of_ten = [kernels(layers, adapted, 30) - kernels(layers, adapted, 20) for layers in (2, 3)]
    print("kernels", (of_ten[1] - of_ten[0]) / 10)
"""
IN_TURN = """
import json, sys
from rlvr_exp.main import main
sys.exit(any(main([*words, "run.inline=true"]) for words in json.loads(sys.argv[1])))
"""
"""Runs that share one process, and its imports."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    """A run of grpo; beside it are the answers of a run of infer."""
    folder = tmp_path_factory.mktemp("one_process") / "run"
    infer = ["+stage=infer", "+experiment=quick", "infer.tasks=3", "infer.decoding=sample", "infer.samples=2"]
    places = f"run.dir={folder}", f"run.dir={folder}-infer", f"infer.output={folder}-answers.jsonl"
    both = [["+stage=grpo", *SMALL, places[0]], [*infer, *places[1:]]]
    found = python(folder, "-c", IN_TURN, json.dumps(both))
    assert found.code == 0, found.output[-3000:]
    return found


def updates(run: Rehearsal) -> list[int]:
    """Of each process the number of optimizer steps on a device."""
    return [len(report["updates"]) for report in run.reports]


def finite_losses(run: Rehearsal) -> list[int]:
    """The steps with a finite loss."""
    return [row["step"] for row in run.metrics if "loss" in row and math.isfinite(row["loss"])]


def test_grpo_trains_on_one_device(run: Rehearsal) -> None:
    assert updates(run) == [2] and finite_losses(run) == [1, 2]


def test_flex_attention_is_the_first_choice(run: Rehearsal) -> None:
    assert "packed rows use" not in run.output, "the warning says why another is used"


def test_synchronisations_do_not_grow(run: Rehearsal) -> None:
    """Between the optimizer steps lie the log of step 1, and the rollouts and the update of step 2."""
    first, second = map(Counter, run.reports[0]["updates"])
    between = second - first
    sampling = sum(count for place, count in between.items() if place.startswith("rollouts/"))
    steps = run.metrics[-1]["tokens/completion_max"]
    assert 0 < sampling / steps <= PER_DECODING_STEP, between
    assert 0 < between.total() - sampling <= PER_UPDATE, between


def test_kernels_of_a_layer_do_not_grow(tmp_path: Path) -> None:
    folder = str(Path(__file__).parents[1] / "rollouts")
    found = python(tmp_path / "count", "-c", f"import sys; sys.path.append({folder!r}){COUNTED}")
    assert found.code == 0, found.output
    plain, adapted = (float(line.split()[1]) for line in found.output.splitlines() if line.startswith("kernels"))
    assert 0 < plain <= PER_LAYER and plain < adapted <= PER_ADAPTED_LAYER


def test_answers_are_inferred_on_one_device(run: Rehearsal) -> None:
    output = run.folder.with_name("run-answers.jsonl")
    assert len(output.read_text().splitlines()) == 3


def test_two_processes_train_on_two_devices(tmp_path: Path) -> None:
    run = completed(tmp_path / "run", "+stage=grpo", *SMALL, "parallel=ddp", devices=2)
    assert updates(run) == [2, 2] and finite_losses(run) == [1, 2]
