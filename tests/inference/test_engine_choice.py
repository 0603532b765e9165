"""Best of n, retries, and independence of the other tasks."""

from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from input_rows import ADD, EDITED, puzzle
from thinning import thinned

from rlvr_exp.config.model import Model
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.inference import Engine, load
from rlvr_exp.inference.engine import Beams, logprob
from rlvr_exp.inference.solution import KEYS
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.tasks.base import Task
from rlvr_exp.verifiers.base import Direct, Verdict

LIMITS = Model(max_prompt_tokens=1024, max_completion_tokens=40)
ROWS = [puzzle(f"task{number}", number) for number in range(6)]


class Says(Direct):
    """Gives the verdict that a function computes from the text, and records its requests."""

    name, version = "says", "1"

    def __init__(self, verdict):
        self._verdict, self.asked = verdict, []

    def judge(self, request):
        self.asked.append(request.candidate.text)
        return self._verdict(request.candidate.text)


def failing(text, log="case 0: got 1, expected 2"):
    """A score that depends on the text alone."""
    return Verdict("failed", "wrong_answer", passed=int(1000 * uniform(str(text))), total=1001, log=log)


@pytest.fixture(scope="module")
def policy():
    return load().policy


@pytest.fixture(scope="module")
def make(policy):
    def engine(verdict=failing, limits=LIMITS, seed=0, **options):
        return Engine(policy, Infer(**options), limits, Says(verdict) if verdict else None, Arc(), seed)

    return engine


MANY = {"decoding": "sample", "samples": 12, "temperature": 1.2, "min_p": 0.01}


def programs_of(make, row, **more):
    """The different programs among the samples of a task."""
    engine = make(**MANY, **more)
    engine.solve(row)
    return list(dict.fromkeys(filter(None, engine._verifier.asked)))


def prompt_of(engine, row):
    inference_task = engine.inference_task(row)
    return engine.policy.encode_prompt(inference_task.domain.task_prompt(inference_task.task))


WAYS = {
    "greedy": {"decoding": "greedy"},
    "again": {"decoding": "greedy", "max_attempts": 2},
    "sampled": {"decoding": "sample", "temperature": 1.3, "top_p": 0.9},
    "best of 3, again": {"decoding": "sample", "samples": 3, "min_p": 0.02, "top_k": 20, "max_attempts": 2},
    "beams": {"decoding": "beam", "beams": 3, "samples": 2},
}


@pytest.fixture(scope="module")
def alone(make):
    """The rows for every kind of decoding, each task solved alone."""
    known = {}

    def rows(way):
        if way not in known:
            engine = make(**WAYS[way], batch_size=1)
            known[way] = {row["id"]: engine.solve(row).row() for row in ROWS}
        return known[way]

    return rows


@pytest.mark.property(30)
@pytest.mark.parametrize("way", thinned(WAYS))
@given(order=st.permutations(range(6)), count=st.integers(2, 6), batch=st.integers(2, 20))
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_else_is_asked_changes_no_answer(make, alone, way, order, count, batch):
    asked = [ROWS[place] for place in order[:count]]
    found = [one.row() for one in make(**WAYS[way], batch_size=batch).solve_all(asked)]
    assert found == [alone(way)[row["id"]] for row in asked]


@pytest.mark.property(29)
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 5), seed=st.integers(0, 99))
def test_strategies_search_differently(make, number, seed):
    """Greedy completions are equal for every seed, samples differ, beams are distinct."""
    row = puzzle(f"task{number}", number)
    first, second = (make(None, seed=one).solve(row) for one in (seed, seed + 1))
    assert first == second
    drawn = programs_of(make, row, seed=seed)
    assert len(drawn) > 1
    engine = make(None, decoding="beam", beams=4)
    prompt, model = prompt_of(engine, row), engine.policy.model
    found = Beams(4)(model, [prompt], [[None] * 4], engine._player("policy", engine._domain).sampling)
    assert len({one.sampled.ids for one in found}) == 4


@pytest.mark.property(29)
def test_strategies_give_different_answers(make):
    ways = ({"decoding": "greedy"}, {"decoding": "sample", "temperature": 1.3}, {"decoding": "beam", "beams": 3})
    texts = {tuple(one.text for one in make(None, **way).solve_all(ROWS[:3])) for way in ways}
    assert len(texts) == 3


def test_another_seed_draws_others(make):
    first, second = (make(decoding="sample", seed=seed, temperature=1.5) for seed in (0, 1))
    assert [one.text for one in first.solve_all(ROWS)] != [one.text for one in second.solve_all(ROWS)]


def test_the_first_sample_that_passes_is_the_answer(make):
    programs = programs_of(make, ROWS[0])
    assert len(programs) > 3, "the samples are varied"
    wanted = set(programs[2:])

    def verdict(text):
        return Verdict("passed", passed=1, total=1) if text in wanted else failing(text)

    engine = make(verdict, **MANY)
    keys = [(0, "infer", "task0", 1, sample) for sample in range(12)]
    (drawn,) = sample_groups(
        engine.policy.model,
        [prompt_of(engine, ROWS[0])],
        [keys],
        engine._player("policy", engine._domain).sampling,
    )
    task = Task("task0", "arc", 0.0, None, None)
    by_sample = [None if one.truncated else Arc().parse(engine.policy.decode(one.ids), task).text for one in drawn]
    first = next(place for place, program in enumerate(by_sample) if program in wanted)
    assert sum(program in wanted for program in by_sample) > 1
    found = engine.solve(ROWS[0])
    assert found.passed and (found.completion.sample, found.program) == (first, by_sample[first])


def test_without_one_that_passes_the_best_score_is_the_answer(make):
    engine = make(**MANY)
    found = engine.solve(ROWS[1])
    best = max(failing(text).score for text in engine._verifier.asked)
    assert not found.passed and found.verdict.score == best > 0


def test_an_answer_without_a_verdict_is_the_last_choice(make):
    last = programs_of(make, ROWS[2])[-1]

    def verdict(text):
        return Verdict("failed", "wrong_answer", total=3) if text == last else Verdict("no_verdict", log="broke")

    assert make(verdict, **MANY).solve(ROWS[2]).program == last


def test_a_failure_is_tried_again_with_what_the_verifier_said(make):
    engine, asked = make(max_attempts=3), []

    class Heard(Policy):
        def encode_prompt(self, text, tools=()):
            asked.append(text)
            return super().encode_prompt(text)

    engine.policies["policy"] = Heard(**{one.name: getattr(engine.policy, one.name) for one in fields(Policy)})
    found = engine.solve(ROWS[0])
    first = engine.inference_task(ROWS[0])
    assert asked[0] == first.domain.task_prompt(first.task)
    assert all(
        "# wrong_answer: case 0: got 1, expected 2" in prompt and prompt.endswith(asked[0]) for prompt in asked[1:]
    )
    assert found.attempts == 3 == len(asked) and [one.attempt for one in found.earlier] == sorted(
        {1, 2, 3} - {found.attempt}
    )


def test_the_second_attempt_may_pass(make):
    seen = []

    def verdict(text):
        seen.append(text)
        return Verdict("passed", passed=1, total=1) if len(seen) > 4 else failing(text)

    found = make(verdict, decoding="sample", samples=4, temperature=1.5, max_attempts=4).solve(ROWS[0])
    assert (
        found.passed and found.attempt == found.attempts > 1 and found.earlier[0].completion.verdict.outcome != "passed"
    )


def test_what_cannot_be_judged_is_not_tried_again(make):
    found = make(lambda text: Verdict("no_verdict", log="the grader broke"), max_attempts=3).solve(ROWS[0])
    assert found.attempts == 1 and found.verdict.outcome == "no_verdict"


def test_what_passes_is_not_tried_again(make):
    assert make(lambda text: Verdict("passed", passed=1, total=1), max_attempts=3).solve(ROWS[0]).attempts == 1


def test_a_prompt_that_is_too_long_is_not_cut(make):
    short = replace(LIMITS, max_prompt_tokens=8)
    found = make(limits=short).solve(ROWS[0])
    assert found.text is None and found.verdict.bucket == "prompt_too_long" and found.attempts == 0


def test_a_second_prompt_that_is_too_long_leaves_the_first_answer(make):
    once = make(max_attempts=1).solve(ROWS[0])
    engine = make(max_attempts=2)
    inference_task = engine.inference_task(ROWS[0])
    room = len(engine.policy.encode_prompt(inference_task.domain.task_prompt(inference_task.task)))
    found = make(max_attempts=2, limits=replace(LIMITS, max_prompt_tokens=room)).solve(ROWS[0])
    assert found == replace(once, completion=replace(once.completion, verdict=found.verdict)) and found.attempts == 1


def test_a_completion_that_is_cut_says_so(make):
    found = make(limits=replace(LIMITS, max_completion_tokens=2)).solve(ROWS[0])
    assert found.completion.truncated and found.completion.tokens == 2 and found.verdict.bucket == "truncated"


def test_without_a_verifier_nothing_is_judged_and_syntax_is_told(make):
    found = make(None).solve(ROWS[0])
    assert found.verdict is None and found.row()["outcome"] is None and found.fault == ""
    cut = make(None, limits=replace(LIMITS, max_completion_tokens=1)).solve(ROWS[0])
    assert cut.program is None and cut.fault and cut.verdict.bucket == "truncated"


def test_the_log_probability_is_the_policys_own(make):
    engine = make(None, decoding="sample")
    found, key = engine.solve(ROWS[0]), (0, "infer", "task0", 1, 0)
    ((drawn,),) = sample_groups(
        engine.policy.model,
        [prompt_of(engine, ROWS[0])],
        [[key]],
        engine._player("policy", engine._domain).sampling,
    )
    assert found.completion.tokens == len(drawn.ids) and abs(found.logprob - sum(drawn.logprobs)) < 1e-3
    assert make(None).solve(ROWS[0]).logprob < 0, "of a greedy answer too"


def test_beams_are_distinct_and_the_likeliest_comes_first(make):
    engine = make(None, decoding="beam")
    prompt, model = prompt_of(engine, ROWS[0]), engine.policy.model
    found = [
        one.sampled
        for one in Beams(5)(model, [prompt], [[None] * 4], engine._player("policy", engine._domain).sampling)
    ]
    means = [logprob(model, prompt, one.ids) / len(one.ids) for one in found]
    assert len({one.ids for one in found}) == 4 and means == sorted(means, reverse=True)
    assert all((one.ids[-1] in engine.policy.eos_ids) != one.truncated for one in found)


def test_formats_may_be_mixed_and_order_is_kept(make):
    rows = [ROWS[0], ADD, EDITED, ROWS[1]]
    found = [one.row() for one in make().solve_all(rows)]
    assert [row["id"] for row in found] == ["task0", "add", "edited", "task1"]
    assert all(tuple(row) == KEYS for row in found)


def test_a_task_alone_needs_its_domain(policy):
    arc = Arc(limit=1)
    task = arc.splits()["test"][0]
    assert Engine(policy, Infer(verify=False), LIMITS, domain=arc).solve(task).id == task.id
    with pytest.raises(InputError, match="worded by its domain"):
        Engine(policy, Infer(verify=False), LIMITS).solve(task)


def test_a_row_that_is_none_is_refused(make):
    with pytest.raises(InputError, match="of no known format"):
        make().solve({"id": 1})
