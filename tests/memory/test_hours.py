"""The plan of the hours: by hand for one run, in the right order for others, and none for devices that are not known."""

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.parallel import NAMED
from rlvr_exp.memory import hours
from rlvr_exp.memory.hours import PEAKS, Hours, duration, planned_hours
from rlvr_exp.memory.plan import plan
from rlvr_exp.memory.reading import workload_of

LARGE = [
    "+stage=grpo",
    "model=qwen14b_lora",
    "algorithm.max_steps=100",
    "algorithm.prompts_per_step=16",
    "algorithm.group_size=8",
    "model.max_prompt_tokens=512",
    "model.max_completion_tokens=1024",
    "run.select.times=0",
    "evaluation.tasks=100",
    "evaluation.samples=4",
    "parallel=single",
    "parallel.device=h100_80gb",
]


def of(*words: str) -> Hours:
    found = planned_hours(compose([*LARGE, *words]).config)
    assert found is not None
    return found


def test_updates_by_hand():
    workload = workload_of(compose(LARGE).config)
    assert workload is not None and workload.dtype == "bfloat16"
    tokens = 16 * 512 + 128 * 1024 / 2
    products = 4 + 2 * workload.checkpointing + 2 * workload.reference
    seconds = 100 * tokens * products * workload.shape.parameters / (989e12 * 0.4)
    assert of().updates == pytest.approx(seconds / 3600)


def test_sampling_reads_the_weights_for_each_token():
    """A few rows: the rest of the cache is small."""
    few = of("algorithm.prompts_per_step=1", "algorithm.group_size=2", "model.max_prompt_tokens=64")
    weights = 2 * 14.77e9
    assert few.sampling * 3600 == pytest.approx(100 * 1024 * weights / (3350e9 * 0.4), rel=0.05)


@pytest.mark.parametrize(
    ("words", "part", "ratio"),
    [
        (["algorithm.max_steps=200"], "updates", 2),
        (["algorithm.max_steps=200"], "sampling", 2),
        (["parallel=ddp", "parallel.processes=2"], "updates", 1 / 2),
        (["algorithm.iterations=2"], "sampling", 1 / 2),
        (["evaluation.tasks=50"], "measurements", 1 / 2),
        (["algorithm.rollout_batch_size=8"], "measurements", 1),
        (["algorithm.kl_coef=0"], "updates", 3 / 4),
        (["model.quantization=none", "model.adapter.kind=none"], "updates", None),
    ],
)
def test_parts_follow_the_options(words: list[str], part: str, ratio: float | None):
    before, after = getattr(of(), part), getattr(of(*words), part)
    assert after > before if ratio is None else after == pytest.approx(ratio * before, rel=0.02)


def test_a_teacher_scores_every_token():
    words = [
        "+stage=distill",
        "model=qwen_coder_1_5b",
        "model.dtype=bfloat16",
        "parallel.device=h200",
        "model.gradient_checkpointing=false",
    ]
    sizes = {"layers": 48, "hidden": 5120, "heads": 40, "kv_heads": 8, "head_dim": 128, "intermediate": 13824}
    shape = [
        f"roles.teacher.model.architecture.{name}={size}" for name, size in (*sizes.items(), ("vocabulary", 152064))
    ]
    found = compose([*words, "roles.teacher.model.name=Qwen/Qwen2.5-Coder-14B-Instruct", *shape]).config
    workload, planned = workload_of(found), planned_hours(found)
    assert workload is not None and workload.teacher is not None and planned is not None
    tokens = workload.share * workload.prompt + workload.share * workload.group * workload.completion / 2
    operations = 6 * workload.shape.parameters + 2 * workload.teacher.shape.parameters
    steps = found.algorithm.max_steps
    assert planned.updates * 3600 == pytest.approx(steps * tokens * operations / (989e12 * 0.4))


def test_a_part_of_a_batch_is_a_step_of_its_own():
    words = ["+stage=ppo", "model=qwen_coder_1_5b", "parallel.device=h200"]
    one, four = (planned_hours(compose([*words, f"algorithm.minibatches={parts}"]).config) for parts in (1, 4))
    assert one is not None and four is not None
    assert four.updates == pytest.approx(one.updates / 4) and four.sampling == pytest.approx(one.sampling / 4)


def test_a_faster_device_takes_less():
    slow, fast = of("parallel.device=l4"), of("parallel.device=b200")
    assert slow.total > 4 * fast.total


def test_every_device_of_a_plan_has_its_peaks():
    assert set(PEAKS) == set(NAMED)


@pytest.mark.parametrize("words", [["parallel.device=cpu"], ["parallel.device=''"]])
def test_there_is_none_for_other_devices(words: list[str]):
    assert planned_hours(compose(["+stage=grpo", *words]).config) is None


def test_kernels_bound_small_models():
    words = ["+stage=grpo", "parallel.device=h200", "algorithm.max_steps=10"]
    found = planned_hours(compose(words).config)
    workload = workload_of(compose(words).config)
    assert found is not None and workload is not None
    assert found.sampling * 3600 >= 10 * workload.completion * workload.shape.layers * hours.LAYER_S


@pytest.mark.parametrize(
    ("value", "text"), [(25.2, "25 h"), (2.04, "2 h"), (0.5, "30 min"), (1 / 60, "1 min"), (0.01, "36 s"), (0, "0 s")]
)
def test_the_unit_suits_the_number(value: float, text: str):
    assert duration(value) == text


def test_the_plan_says_what_it_assumes():
    text = plan(compose(LARGE).config, [])
    assert "time: about" in text and "40% of the device's peak rates" in text and "not measured" in text
