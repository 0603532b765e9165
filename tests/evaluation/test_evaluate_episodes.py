"""An evaluation takes a greedy completion and samples of each task, and none of a prompt that is too long."""

from types import SimpleNamespace

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from rlvr_exp.config.run import Evaluation
from rlvr_exp.episodes.environments import SingleTurn
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.evaluation.evaluate_episodes import evaluate_episodes
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Direct, Verdict


class Even(Direct):
    name, version = "even", "1"

    def judge(self, request):
        return Verdict("passed") if len(request.candidate.text) % 2 == 0 else Verdict("failed", "wrong_answer")


@pytest.fixture(scope="module")
def policy():
    torch.manual_seed(0)
    shape = {"vocab_size": 30, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8}
    model = Qwen3ForCausalLM(Qwen3Config(**shape, num_attention_heads=2, num_key_value_heads=1, initializer_range=0.3))
    return SimpleNamespace(
        model=model.eval(),
        eos_ids=(1,),
        max_tokens=64,
        encode_prompt=lambda text, tools=(): [ord(c) % 28 + 2 for c in text],
        decode=repr,
    )


def scored(policy, seed=0, **options):
    tasks = [SimpleNamespace(id=name, family="f", problem=None) for name in ("aa", "b", "cccc", "too long a prompt")]
    domain = SimpleNamespace(task_prompt=lambda task: task.id, parse=lambda text, task: Candidate(text), stop_text="")
    told = []
    options = Evaluation(samples=3, **options)
    sampling = SamplingParams.of(options, policy, 12, options.batch_size, domain)
    runner = EpisodeRunner(SingleTurn(domain), {POLICY: Player(policy, sampling, 10)}, Even())
    rows = evaluate_episodes(runner, tasks, options, seed, lambda *at: told.append(at))
    verdicts = [row.verdict.outcome for row in rows]
    assert told[-1] == (4, 4, verdicts.count("passed") / sum(one != "no_verdict" for one in verdicts))
    return rows


def told(row):
    return row.completion.task.id, row.mode, row.completion.text


def test_each_task_has_a_greedy_answer_and_its_samples_in_order(policy):
    rows = scored(policy)
    wanted = [("greedy", 0), ("sampled", 0), ("sampled", 1), ("sampled", 2)]
    assert [(*told(row)[:2], row.completion.sample) for row in rows] == [
        (task, *one) for task in ("aa", "b", "cccc", "too long a prompt") for one in wanted
    ]
    assert {row.verdict.bucket for row in rows if row.completion.task.id == "too long a prompt"} == {"prompt_too_long"}
    assert all(row.completion.seconds > 0 for row in rows if row.verdict.bucket != "prompt_too_long")


def test_answers_depend_neither_on_the_batch_nor_on_the_greedy_one_beside_them(policy):
    rows = [told(row) for row in scored(policy)]
    assert [told(row) for row in scored(policy, batch_size=1)] == rows
    assert [told(row) for row in scored(policy, greedy=False)] == [row for row in rows if row[1] == "sampled"]


def test_another_seed_changes_the_samples_and_not_the_greedy_answers(policy):
    here, there = scored(policy), scored(policy, seed=1)
    pairs = [(a.mode, told(a) == told(b)) for a, b in zip(here, there, strict=True) if a.completion.tokens]
    assert all(same for mode, same in pairs if mode == "greedy")
    assert not all(same for mode, same in pairs if mode == "sampled")


def test_filters_of_the_evaluation_are_applied(policy):
    rows = scored(policy, top_k=1)
    greedy = {told(row)[0]: told(row)[2] for row in rows if row.mode == "greedy"}
    assert all(row.completion.text == greedy[row.completion.task.id] for row in rows)
