"""The diagnosis names the first cause: runs in memory, each sick in one way, and healthy ones of many kinds."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sick_world import World, changed
from sicknesses import LATE, SICK, failing, flaky, garbage, hacked
from thinning import thinned, tries

import rlvr_exp
from rlvr_exp.config.schema import STAGES, trains
from rlvr_exp.report import Report
from rlvr_exp.report.cause import Finding, Weight
from rlvr_exp.report.causes import CAUSES
from rlvr_exp.report.data import count_step
from rlvr_exp.report.diagnosis import Diagnosis, diagnose
from rlvr_exp.report.evidence import Evidence, Share


@pytest.mark.parametrize("sickness", thinned(SICK))
def test_the_first_cause_is_named(sickness):
    cause, world = SICK[sickness]
    found = diagnose(world.evidence())
    assert found.findings, "nothing was found"
    assert found.findings[0].cause == cause, [(one.cause, one.title, one.onset) for one in found.findings]


def test_texts_that_are_shown_with_anothers_verdict_are_no_contradiction():
    """One plan leads to right code and to wrong code."""
    shown = diagnose(World(change=lambda row: flaky(row) | {"about": {"verdict_of": "code"}}).evidence())
    own = diagnose(World(change=lambda row: flaky(row) | {"about": {"stage": "code"}}).evidence())
    causes = [[one.cause for one in found.findings] for found in (shown, own)]
    assert "contradiction" not in causes[0] and "contradiction" in causes[1]


NEED_STEPS = {
    "decay", "learned by heart", "values that explain nothing",
    "warm-up without end", "nothing arrives", "held by the reference", "nothing ever passes", "gradients explode", "KL blow-up",
    "entropy collapse", "verifier dies half-way", "answers grow past the limit", "a hole in the verifier", "loss is no number",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("sickness", thinned(sorted(SICK.keys() - NEED_STEPS)))
def test_in_a_short_run_too(sickness):
    """Six steps of 32 completions."""
    cause, world = SICK[sickness]
    found = diagnose(dataclasses.replace(world, steps=6, size=4).evidence())
    assert found.findings and found.findings[0].cause == cause, [(one.cause, one.title) for one in found.findings]


@settings(max_examples=tries(40), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rate=st.floats(0.15, 0.7),
    gain=st.floats(-0.05, 0.25),
    steps=st.integers(1, 40),
    groups=st.integers(4, 16),
    size=st.sampled_from([4, 8]),
)
def test_a_healthy_run_raises_no_alarm(seed, rate, gain, steps, groups, size):
    world = World(steps=steps, groups=groups, size=size, rate=rate, gain=gain, seed=seed)
    # A first step within the warm-up has a rate of zero, and a run of that step alone learns nothing.
    found = diagnose(dataclasses.replace(world, row=lambda step: {"learning_rate": 1e-4}).evidence())
    assert [(one.cause, one.title) for one in found.findings] == []


def test_code_that_is_not_kept_is_a_mistake_and_no_cheat():
    def miscopied(row):
        wrong = {"outcome": "rejected", "bucket": None, "rule": "program-changed"}
        return {} if row.outcome == "passed" else wrong

    assert "rejected" not in {one.cause for one in diagnose(World(change=miscopied).evidence()).findings}


def test_nothing_at_all_is_no_alarm():
    found = diagnose(Evidence())
    assert found.findings == found.notes == () and found.headline == "No problem was found"


def test_every_sample_is_evidence_of_its_cause():
    for cause, of in {"parse": "wrong parser", "truncation": "truncation", "no_verdict": "verifier down"}.items():
        first = diagnose(SICK[of][1].evidence()).findings[0]
        assert len(first.samples) == 3 and len({row.completion.task.id for row in first.samples}) == 3
        assert all(
            cause in (row.verdict.reason, "truncation" if row.completion.truncated else "") for row in first.samples
        )


def test_a_parser_that_refuses_programs_is_told_from_a_policy_that_writes_none():
    refused = diagnose(World(change=failing("parse", "no <answer> tag")).evidence()).findings[0]
    scribbled = diagnose(World(change=lambda row: garbage(row)).evidence()).findings[0]
    assert "the parser rejects valid programs" in refused.why and "parser rejects" not in scribbled.why


def test_counts_are_those_of_the_rows():
    found = diagnose(World(steps=3, change=failing("parse")).evidence()).findings[0]
    assert "64 of 64 (100%) completions" in found.title
    found = diagnose(
        World(steps=3, change=lambda row: failing("parse", completion="?")(row) if row.sample else {}).evidence()
    ).findings[0]
    assert f"{56:,} of 64" in found.title or "57 of 64" in found.title


def test_what_was_so_from_the_start_comes_before_what_came_later():
    """A reward for length from the first step breaks the policy in the twelfth."""

    def change(row):
        paid = hacked(row)
        return {**garbage(row), **paid} if row.step >= LATE else paid

    causes = [one.cause for one in diagnose(World(change=change, gain=0.0).evidence()).findings]
    assert causes[0] == "reward_hacking" and "parse" in causes


def test_the_table_names_the_causes_of_the_page():
    """Each row explains causes that exist, and stands in the table of docs/report.md."""
    names = {cause.name for cause in CAUSES}
    page = (Path(rlvr_exp.__file__).parent / "docs/report.md").read_text()
    assert {name for cause in CAUSES for name in cause.explains} <= names
    assert [name for name in names if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        (
            "16 of 16 gold answers of the training tasks do not pass:\nt1: failed (parse): no tag\nt2: failed (parse)\nx",
            "parse",
        ),
        ("3 of 16 gold answers of the training tasks do not pass:\nt1: no_verdict: gone\nx", "no_verdict"),
        ("9 of 16 gold answers of the training tasks do not pass:\nt1: failed (timeout): slow\nx", "alike"),
        (
            "verifier python_io: 30 of 64 requests had no verdict, allowed share 0.05. Last reason: gone. Fix the cause, or",
            "no_verdict",
        ),
        ("step 3: loss is nan. Lower optimizer.lr, or look at this step's samples", "exploding"),
        (
            "step 9: the last 6 updates were skipped, from step 4 on: the loss is not a finite number. Weights",
            "exploding",
        ),
        ("step 0: the engine that samples is not the policy that is trained: their log-probabilities", "ratio"),
    ],
)
def test_a_run_that_stopped_before_it_sampled_is_diagnosed_by_its_reason(reason, cause):
    seen = Evidence(config={"stage": "grpo", "algorithm": {}}, summary={"status": "stopped", "reason": reason})
    first = diagnose(seen).findings[0]
    assert first.cause == cause and first.weight is Weight.BLOCKS


def test_a_reason_that_no_cause_explains_is_told_once_as_the_end():
    reason = "a message of another kind\nin two lines"
    seen = Evidence(config={"stage": "grpo", "algorithm": {}}, summary={"status": "stopped", "reason": reason})
    found = diagnose(seen)
    assert found.findings == () and found.headline == "The run stopped: a message of another kind"


def test_clipping_that_the_optimizer_undoes_is_no_alarm():
    """Adam divides by the gradient's size: nothing is lost where it is always clipped to a hundredth."""
    norms, trained = {"grad_norm": 3.0, "grad_norm/after": 1e-3}, {"model": {"trained": 10**6}}
    assert not diagnose(World(row=lambda step: norms, manifest=trained).evidence()).findings


def test_what_was_not_told_apart_before_training_is_not_overfitting():
    """Held-out success rose as far as its interval shows."""
    change = {"pass_at_1": {"value": 0.3, "low": 0.2, "high": 0.4}}
    assert not diagnose(World(gain=0.6, rate=0.1, change_held_out=change).evidence()).findings


def test_a_supervised_run_is_judged_by_its_measurements():
    world = World()
    before, after = (
        count_step(step, rows)
        for step, rows in (
            (0, world._step(1)),
            (9, [changed(row, garbage) for row in world._step(2)]),
        )
    )
    seen = Evidence(
        metrics=[{"step": step, "loss": 2.0 + step, "learning_rate": 1.0} for step in range(1, 10)],
        before=before, after=after, config={"stage": "sft", "algorithm": {}, "optimizer": {"lr": 1.0}},
    )  # fmt: skip
    assert diagnose(seen).findings[0].cause == "exploding"


def test_costs_are_notes_and_no_causes():
    slow = World(row=lambda step: {"time/verify": 1.5})
    growing = World(steps=40, row=lambda step: {"system/rss_mb": 1000.0 + 50 * step})
    assert [one.cause for one in diagnose(slow.evidence()).notes] == ["slow_verifier"]
    assert [one.cause for one in diagnose(growing.evidence()).notes] == ["growth"]
    assert not diagnose(slow.evidence()).findings and not diagnose(growing.evidence()).findings


def test_memory_that_settles_is_no_note():
    settled = World(steps=40, row=lambda step: {"system/rss_mb": 1000.0 + 50 * min(step, 10) + step % 3})
    assert not diagnose(settled.evidence()).notes


def test_the_outcome_is_that_of_the_held_out_tasks():
    change = {"pass_at_1": {"value": 0.05, "low": 0.02, "high": 0.08}}
    assert diagnose(World(change_held_out=change).evidence()).outcome == "rose"
    assert (
        diagnose(World(change_held_out={"pass_at_1": {"value": 0.0, "low": -0.02, "high": 0.02}}).evidence()).outcome
        == "level"
    )
    assert diagnose(World(gain=0.5, rate=0.1).evidence()).outcome == "rose"


@given(st.integers(0, 50), st.integers(0, 50))
def test_a_share_lies_within_its_interval(count, more):
    found = Share(count, count + more)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0 or found.of == 0


@pytest.mark.parametrize(
    ("cause", "outcome", "training", "told"),
    [
        ("kl", "level", True, "a title"),
        ("kl", "rose", True, ""),
        ("kl", "unknown", False, ""),
        ("", "unknown", True, ""),
    ],
)
def test_only_a_run_that_trained_and_did_not_learn_has_a_cause_to_tell(cause, outcome, training, told, tmp_path):
    """A stop's own reason is printed anyway."""
    findings = (Finding(cause, "a title", "why", (), "advice", Weight.BLOCKS),) if cause else ()
    found = Diagnosis(findings, (), outcome, "", "The run stopped: so it did")
    assert Report(tmp_path, found, training).root_cause == told


def test_stages_that_train():
    found = {name for name in [*STAGES, "no stage"] if trains(name)}
    assert found >= {"sft", "grpo", "ppo"} and not found & {"no stage", "evaluate", "infer", "verify", "report"}


@pytest.mark.parametrize(("last", "told"), [(0.3, True), (0.06, False)])
def test_tests_that_lose_touch_with_the_hidden_ones_are_told(last: float, told: bool):
    """The gap of a solver and a tester opens; one that stays small, or was there from the start, is no alarm."""

    def rows(first: float):
        def row(step: int) -> dict[str, float]:
            gap = first + (last - first) * min(1.0, step / 20) + 0.01 * (step % 3)
            return {"learning_rate": 1e-4, "adversarial/gap": gap, "adversarial/validity": 0.5}

        return row

    world = World(steps=24)
    opened = diagnose(dataclasses.replace(world, row=rows(0.02)).evidence())
    assert ("gap_opens" in {one.cause for one in opened.findings}) is told
    always = diagnose(dataclasses.replace(world, row=rows(last)).evidence())
    assert "gap_opens" not in {one.cause for one in always.findings}
