"""Both sides of benchmark=training compute the same gradient, and are not compared otherwise."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from completions import completion

from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.benchmarks.sides import DrawnReward, Lap, Sides, method
from rlvr_exp.benchmarks.training import PairedRounds, Training, difference
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core import machine
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.records.context import RunContext
from rlvr_exp.stages.benchmark import _announce_memory, _bench

WORDS = [
    "+stage=benchmark",
    "benchmark=training",
    "+experiment=quick",
    "verifier.validate=0",
    "algorithm.prompts_per_step=2",
]
WORDS += ["model.max_completion_tokens=16"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "manifest.json").write_text("{}")
    with _bench(compose(WORDS).config, RunContext(folder, lambda event: None)) as made:
        yield made


def sharpened(*given, **more):
    scores = score(*given, **more)
    return replace(scores, logprobs=1.01 * scores.logprobs)


@pytest.mark.slow
def test_both_sides_are_timed_on_the_same_completions(bench, monkeypatch):
    monkeypatch.setattr("rlvr_exp.benchmarks.training.usable", lambda: 1)
    pairs = Training(2, 1).measure(bench, lambda *_: None)
    assert pairs.apart <= 1e-4
    assert all(lap.samples == 8 and lap.total > 0 and lap.tokens > 0 for pair in pairs.rounds for lap in pair)


def test_another_aggregation_in_several_passes_has_one_gradient_as_well(bench):
    options = compose([*WORDS, "algorithm.loss=token"]).config.algorithm
    algorithm = build(options, max_completion_tokens=16)
    other = replace(bench, options=options, algorithm=algorithm, limits=replace(bench.limits, tokens=300))
    assert difference(*Sides(other).gradients(1)) <= 1e-4


def test_sides_with_other_gradients_are_not_compared(bench, monkeypatch):
    monkeypatch.setattr("rlvr_exp.algorithms.trainer.score", sharpened)
    with pytest.raises(GuardStop, match="gradients .* differ by"):
        Training(2, 1).measure(bench, lambda *_: None)


def test_what_stock_does_not_do_is_named():
    options = compose(
        [*WORDS, "algorithm.loss=dapo", "algorithm.entropy_coef=0.1", "algorithm.top_p=0.9"]
    ).config.algorithm
    with pytest.raises(InputError) as refused:
        method(options)
    assert {problem.where for problem in refused.value.problems} == {
        "algorithm.loss",
        "algorithm.entropy_coef",
        "algorithm.top_p",
    }
    with pytest.raises(InputError, match="nothing to compare"):
        method(SimpleNamespace(_target_="rlvr_exp.algorithms.ppo.PPO"))


def test_a_gradient_that_is_not_there_is_no_agreement():
    assert difference(torch.ones(3), torch.ones(3)) == 0
    assert difference(torch.ones(3), torch.zeros(3)) == difference(torch.ones(3), torch.ones(4)) == float("inf")


def test_the_memory_of_both_sides_is_said_before_the_first_round_and_too_little_is_refused(tmp_path, monkeypatch):
    config = compose([*WORDS, "model.max_prompt_tokens=1000", "parallel.device=h200"]).config
    texts = SimpleNamespace(task_prompt=lambda task: "word " * task)
    policy = SimpleNamespace(encode_prompt=lambda text, tools=(): [0] * (100 + len(text)))
    picks = SimpleNamespace(pick=lambda place, count: [place % 3])
    bench = SimpleNamespace(policy=policy, domain=texts, curriculum=picks)
    monkeypatch.setattr(machine, "available", lambda: 3 * 2**30)
    said: list[str] = []
    context = RunContext(tmp_path, lambda event: said.append(event["text"]))
    _announce_memory(config, context, bench)
    (line,) = said
    assert "trl.GRPOTrainer" in line and "prompts of 110 tokens" in line and "of 3 GiB" in line
    monkeypatch.setattr(machine, "total", lambda: 2**29)
    with pytest.raises(InputError, match="more memory than this machine has"):
        _announce_memory(config, context, bench)


def lap(generate: float, verify: float, update: float, other: float, tokens: int = 100, samples: int = 10) -> Lap:
    return Lap({"generate": generate, "verify": verify, "update": update, "other": other}, samples, tokens)


def pairs() -> PairedRounds:
    ours, stock = lap(1.0, 0.5, 2.0, 0.5), lap(4.0, 0.5, 10.0, 1.5, tokens=200)
    return PairedRounds(((ours, stock), (ours, stock)), 2e-6, 2, 1)


def test_phases_are_compared_by_what_they_turn_out():
    lines = {line.name: line for line in pairs().lines()}
    assert lines["rollouts"].ours == pytest.approx(100) and lines["rollouts"].stock == pytest.approx(50)
    assert lines["rollouts"].ratio.value == pytest.approx(2.0), "stock drew twice the tokens in four times the time"
    assert lines["update"].ratio.value == pytest.approx(5.0)
    assert lines["step"].ratio.value == pytest.approx(4.0)


def test_shares_add_up_and_the_largest_binds():
    assert sum(pairs().shares(0).values()) == pytest.approx(1.0)
    assert pairs().binds == "update"


def test_the_text_says_what_was_drawn_and_which_floors_do_not_hold():
    text = pairs().text()
    assert "200 ours, 400 stock's" in text and "update binds: 50%" in text
    held = {
        line.split("|")[1].strip(): line.split("|")[-2].strip() for line in text.splitlines() if line.count("|") > 7
    }
    assert (held["rollouts"], held["update"], held["step"]) == ("NO", "yes", "yes")


def test_the_share_of_the_machines_limit_is_printed_if_operations_were_counted():
    assert pairs().arithmetic is None and "GFLOP/s" not in pairs().text()
    ours, stock = replace(lap(1.0, 0.5, 2.0, 0.5), flops=60e9), lap(4.0, 0.5, 10.0, 1.5)
    counted = PairedRounds(((ours, stock), (ours, stock)), 2e-6, 2, 1, (30e9, 50e9))
    assert counted.arithmetic == pytest.approx((30e9, 40e9, 0.75))
    assert "30 GFLOP/s, 75% of a large float32 matrix product on the same threads (40 GFLOP/s)" in counted.text()
    assert counted.to_dict()["arithmetic"]["share"] == pytest.approx(0.75)


def test_laps_add_up():
    both = lap(1, 2, 3, 4) + lap(1, 1, 1, 1)
    assert both.total == 14 and both.steps == 2 and both.samples == 20 and both.seconds["update"] == 4


def test_a_text_is_paid_alike_on_both_sides_and_texts_differ() -> None:
    drawn = [completion(completion=f"text {number}") for number in range(40)]
    ours, theirs = DrawnReward()(drawn), DrawnReward()(drawn[::-1])[::-1]
    assert ours == theirs
    assert {one.total for one in ours} == {0.0, 1.0}
