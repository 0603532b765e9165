"""SDPO and SRPO: gradients against the papers' formulas, evaluated naively in float64; the teacher's prompts and weights."""

import math
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import fixed_batch as batch
import pytest
import torch
from fixed_batch import PROMPTS, REWARDS
from hypothesis import given, settings
from hypothesis import strategies as st
from trl.experimental.sdpo.loss_utils import (
    compute_full_logit_self_distillation_loss,
    compute_topk_self_distillation_loss,
)
from trl.trainer.distillation_trainer import _chunked_divergence_loss

from rlvr_exp.algorithms.distillation import MovingAverage, divergence, shared_starts, with_rest
from rlvr_exp.algorithms.packed_layers import Choice
from rlvr_exp.core.errors import InputError
from rlvr_exp.verifiers.base import Verdict

VOCABULARY = 20
TEACHER = "roles.teacher.model.embedded=tiny"
"""A command needs one; the tests have a teacher of their own."""
HINTS = {0: [(12, 3), (12, 4)], 1: [(13, 3), ()], 2: [(14, 3), (15,), (3, 3, 3)]}
"""Tokens that the teacher's prompts add, for each answer of a prompt that did not pass, in order. (0, 0) and (1, 1) passed."""


class Words:
    """The domain's words: feedback and teacher prompts are token ids already."""

    def feedback(self, task, verdict):
        return f"{task.id} said"

    def teacher_prompt(self, task, solution, attempt, feedback):
        return task, solution, attempt, feedback

    def gold_completion(self, task):
        return f"gold of {task.id}" if self.has_golds else None

    def splits(self):
        return {"train": [SimpleNamespace(id="task 0")]}

    def __init__(self, has_golds=True):
        self.has_golds = has_golds


class Reader:
    """The policy's tokenizer: the prompt of the fixed batch with the hint of the answer that asks next."""

    max_tokens = 64

    def __init__(self):
        self.asked: list[tuple] = []

    def encode_prompt(self, words, tools=()):
        task, *hints = words
        place = int(task.id.split()[1])
        answer = sum(one[0] == place for one in self.asked)
        self.asked.append((place, *hints))
        return [*PROMPTS[place], *HINTS[place][answer]]


def hinted(place: int, answer: int) -> tuple[int, ...]:
    """The teacher's prompt of an answer; the plain one of an answer that passed."""
    failed = [i for i, reward in enumerate(REWARDS[place]) if reward <= 0.5]
    return (*PROMPTS[place], *(HINTS[place][failed.index(answer)] if answer in failed else ()))


def distribution(model, prompt, answer) -> torch.Tensor:
    """(tokens, vocabulary) log-probabilities, row by row."""
    return model(input_ids=torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)


def events(teacher, student, top_k):
    """The teacher's most probable tokens and the rest, as probabilities of both."""
    ids = teacher.argsort(descending=True)[:top_k].tolist()
    rest = [token for token in range(VOCABULARY) if token not in ids]
    parts = [[token] for token in ids] + ([rest] if rest else [])
    return [(teacher[part].exp().sum(), student[part].exp().sum()) for part in parts]


def paper_divergence(alpha, pairs):
    """GKD, eq. 1, over events."""
    if alpha == 0:
        return sum(t * (t / s).log() for t, s in pairs)
    if alpha == 1:
        return sum(s * (s / t).log() for t, s in pairs)
    total = 0.0
    for t, s in pairs:
        m = (1 - alpha) * s + alpha * t
        total = total + (1 - alpha) * s * (s / m).log() + alpha * t * (t / m).log()
    return total


def normalised(rewards):
    spread = torch.tensor(rewards).std().item()
    return [0.0] * 3 if spread == 0 else [(r - sum(rewards) / 3) / (spread + 1e-6) for r in rewards]


def loss(model, recorded, alpha=0.5, top_k=100, clip=2.0, weight=1.0, route=False, beta=0.0):
    """The mean over answers of the mean over their tokens."""
    answers = []
    for q, row in enumerate(batch.answers()):
        for i, answer in enumerate(row):
            student = distribution(model, PROMPTS[q], answer)
            with torch.no_grad():
                teacher = distribution(model, hinted(q, i), answer)
            correct = REWARDS[q][i] > 0.5
            # An answer that passed and has no other such in its group has no teacher.
            taught = not correct
            own, other = (0.0 if taught else 1.0, float(taught)) if route else (1 - weight, weight * taught)
            tokens = []
            for t, token in enumerate(answer):
                ratio = (student[t, token] - recorded[q][i][t]).exp()
                advantage = normalised(list(REWARDS[q]))[i]
                policy = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
                pairs = events(teacher[t], student[t], top_k)
                entropy = -sum(p * p.log() for p, _ in pairs)
                factor = ratio.detach().clamp(max=clip) * math.exp(-beta * entropy)
                tokens.append(own * policy + other * factor * paper_divergence(alpha, pairs))
            answers.append(sum(tokens) / len(tokens))
    return sum(answers) / len(answers)


def step(folder, name, tokens, *words, adapter=False, packed=True):
    """(gradient of a real step, model before it, records of the sampler, what the teacher was asked). In float64."""
    who = batch.algorithm(name, *words)
    reader = Reader()
    who.begin(Words(), reader, None)
    player = batch.player_of(folder / "policy", adapter)
    plain = deepcopy(player.model)
    recorded = batch.drawn_from(plain, 0.4)
    made = who.experience(batch.groups(who, recorded), 0)
    trainer = batch.trainer(folder, who, tokens, player=player)
    if not packed:
        trainer._choice = Choice(None, ())
    got = batch.gradient(trainer, made)
    assert (trainer._way is not None) == packed
    return got, plain, recorded, reader


def trainer_passes(trainer, given):
    trainer.take(given)
    return trainer.passes()[0]


def descent(model, loss) -> torch.Tensor:
    loss.backward()
    return torch.cat([value.grad.flatten() for value in model.parameters() if value.requires_grad])


CASES = {
    "sdpo": ("sdpo", [], {}),
    "forward": ("sdpo", ["algorithm.alpha=0"], {"alpha": 0}),
    "reverse": ("sdpo", ["algorithm.alpha=1"], {"alpha": 1}),
    "few tokens": ("sdpo", ["algorithm.distillation_top_k=3"], {"top_k": 3}),
    "clipped": ("sdpo", ["algorithm.is_clip=1.05"], {"clip": 1.05}),
    "mixed": ("sdpo", ["algorithm.distillation_weight=0.3"], {"weight": 0.3}),
    "srpo": ("srpo", [], {"route": True, "beta": 1.0}),
}


@pytest.mark.parametrize("tokens", [1000, 12])
@pytest.mark.parametrize("case", CASES)
def test_the_gradient_is_the_papers_in_any_split(tmp_path, case, tokens):
    name, words, formula = CASES[case]
    got, plain, recorded, _ = step(tmp_path, name, tokens, *words)
    wanted = descent(plain, loss(plain, recorded, **formula))
    assert wanted.norm() > 1e-3
    assert (got - wanted).norm() <= 1e-6 * wanted.norm()


@pytest.mark.parametrize(("adapter", "packed"), [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("case", ["mixed", "srpo"])
def test_the_gradient_is_the_papers_with_adapters_and_without_packing(tmp_path, case, adapter, packed):
    name, words, formula = CASES[case]
    got, plain, recorded, _ = step(tmp_path, name, 24, *words, adapter=adapter, packed=packed)
    wanted = descent(plain, loss(plain, recorded, **formula))
    assert wanted.norm() > 1e-3
    assert (got - wanted).norm() <= 1e-6 * wanted.norm()


def test_a_teacher_sees_another_answer_that_passed_and_the_feedback_on_one_that_did_not(tmp_path):
    *_, reader = step(tmp_path, "sdpo", 1000)
    # The answers that passed have no other such answer in their groups, and get no prompt.
    assert reader.asked == [
        (0, "answer 0", "answer 1", "task 0 said"),
        (0, "answer 0", "answer 2", "task 0 said"),
        (1, "answer 1", "answer 0", "task 1 said"),
        (1, "answer 1", "answer 2", "task 1 said"),
        *((2, "", f"answer {place}", "task 2 said") for place in range(3)),
    ]


def asked(name, texts, outcomes, *words, context=1000, domain=None):
    """(the teacher's hints for each answer of a group, whether the answer is taught). Its prompts have two tokens."""
    who = batch.algorithm(name, *words)
    who.begin(
        domain or Words(), SimpleNamespace(max_tokens=context, encode_prompt=lambda hints, tools=(): [5, 6]), None
    )
    recorded = [[(0.0,) * len(one) for one in row] for row in batch.answers()]
    group = batch.groups(who, recorded).batch[0]
    answers = [
        replace(one, text=text, verdict=Verdict(outcome, bucket="parse" if outcome == "failed" else None))
        for one, text, outcome in zip(group.completions, texts, outcomes, strict=True)
    ]
    group = replace(group, completions=tuple(answers))
    taught = [who._teacher_prompt(group, place) is not None for place in range(3)]
    return [who.hints(group, place) for place in range(3)], taught


def test_a_passed_answer_is_shown_another_one_without_its_thoughts():
    texts = ["<think>no</think>one", "two", "three"]
    hints, taught = asked("sdpo", texts, ["passed", "passed", "failed"])
    assert hints == [("two", ""), ("one", ""), ("one", "task 0 said")] and taught == [True] * 3
    hints, _ = asked("sdpo", texts, ["passed", "failed", "failed"], "algorithm.include_feedback=false")
    assert hints == [("", ""), ("one", ""), ("one", "")]


def test_answers_without_a_hint_or_a_verdict_or_room_are_not_taught():
    texts, none = ["one", "two", "three"], "algorithm.include_feedback=false"
    assert asked("sdpo", texts, ["failed"] * 3, none)[1] == [False] * 3
    assert asked("sdpo", texts, ["passed", "no_verdict", "failed"])[1] == [False, False, True]
    assert asked("sdpo", texts, ["failed"] * 3, context=5)[1] == [True, True, False]  # of 3, 1 and 6 tokens


def test_the_teacher_of_sdft_sees_the_reference_answer_and_is_refused_without_one():
    answers = ["one", "two", "three"], ["failed"] * 3
    assert asked("sdft", *answers)[0] == [("gold of task 0", "")] * 3
    with pytest.raises(InputError, match="no task has a reference answer"):
        asked("sdft", *answers, domain=Words(has_golds=False))


@given(st.integers(0, 2**31), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.integers(1, 8))
@settings(max_examples=50, deadline=None)
def test_a_divergence_is_that_of_trl_and_of_fewer_events_is_no_larger(seed, alpha, top_k):
    torch.manual_seed(seed)
    student, teacher = (2 * torch.randn(1, 8, dtype=torch.float64) for _ in range(2))
    logs, others = student.log_softmax(-1), teacher.log_softmax(-1)
    whole = divergence(logs, others, alpha)
    assert torch.allclose(whole, compute_full_logit_self_distillation_loss(student, teacher, distillation_alpha=alpha))
    ids = logs.topk(top_k).indices  # TRL takes the student's tokens.
    own = divergence(with_rest(logs.gather(1, ids), 8), with_rest(others.gather(1, ids), 8), alpha)
    assert 0 <= own <= whole + 1e-9
    if top_k < 8:
        theirs = compute_topk_self_distillation_loss(
            student, teacher, distillation_topk=top_k, distillation_alpha=alpha, distillation_add_tail=True
        )
        assert torch.allclose(own, theirs)


def test_the_moving_average_follows_and_leaves_the_model_as_it_was(tmp_path):
    model = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 2.0]]))
    average = MovingAverage(model, 0.25)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[5.0, 2.0]]))
    average.follow()
    with average.in_use():
        assert model.weight.tolist() == [[2.0, 2.0]]
    assert model.weight.tolist() == [[5.0, 2.0]]
    (tmp_path / "training").mkdir()
    average.save(tmp_path)
    other = MovingAverage(model, 0.25)
    other.load(tmp_path)
    with other.in_use():
        assert model.weight.tolist() == [[2.0, 2.0]]


def test_a_teacher_has_the_averaged_weights(tmp_path):
    """A step moves the policy; the teacher of the next one is half way behind it."""
    who = batch.algorithm("sdpo", "algorithm.teacher_update_rate=0.5")
    who.begin(Words(), Reader(), None)
    trainer = batch.trainer(tmp_path, who, player=batch.player_of(tmp_path / "policy", False))
    first, half = batch.doubled(trainer.model), batch.doubled(trainer.model)
    recorded = batch.drawn_from(first, 0.0)
    given = who.experience(batch.groups(who, recorded), 0)
    batch.gradient(trainer, given)
    with torch.no_grad():
        for value, moved in zip(half.parameters(), trainer.model.parameters(), strict=True):
            value.copy_((value + moved) / 2)
    found = [inputs["teacher_drawn"] for inputs in trainer_passes(trainer, given)]
    wanted = [
        batch.logprobs(half, hinted(q, i), answer)
        for q, row in enumerate(batch.answers())
        for i, answer in enumerate(row)
        if REWARDS[q][i] <= 0.5
    ]
    assert torch.cat(found).tolist() == pytest.approx(torch.cat(wanted).tolist(), abs=1e-5)
    behind = [batch.logprobs(first, hinted(0, 1), batch.answers()[0][1])]
    assert torch.cat(found)[: len(behind[0])].tolist() != pytest.approx(behind[0].tolist(), abs=1e-4)


def test_prompts_share_what_they_have_in_common_within_a_group():
    prompts = [[1, 2, 3], [1, 2, 4, 5], [6], [7], [8, 9], [8, 9], [8]]
    starts, rests, numbers = shared_starts(prompts, [0, 0, 1, 1, 2, 2, 2])
    assert [start + rest for start, rest in zip(starts, rests, strict=True)] == prompts
    assert starts[0] == starts[1] == [1, 2] and starts[4] == starts[5] == [8, 9]
    assert numbers == [0, 0, 1, 2, 3, 3, 4]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_a_step_of_distillation_has_the_gradient_of_trls_loss(tmp_path, alpha):
    words = [TEACHER, f"algorithm.alpha={alpha}", "algorithm.distillation_top_k=0", "algorithm.loss=token"]
    who = batch.algorithm("distillation", *words)
    teacher = batch.policy(tmp_path / "teacher")
    draw = torch.Generator().manual_seed(5)
    for value in teacher.model.double().parameters():
        value.data += 0.3 * torch.randn(value.shape, generator=draw, dtype=torch.float64)
    who.begin(
        Words(), Reader(), SimpleNamespace(model=teacher.model, encode_prompt=lambda text, tools=(): PROMPTS[int(text)])
    )
    recorded = batch.drawn_from(batch.policy(tmp_path / "same").model, 0.0)
    groups = batch.groups(who, recorded, sampled_at=1)
    named = tuple(replace(group, prompts=(str(place),) * 3) for place, group in enumerate(groups.batch))
    given = who.experience(replace(groups, batch=named), 0)
    made = batch.trainer(tmp_path / "student", who)
    made.model.double()
    plain, got = batch.doubled(made.model), batch.gradient(made, given)

    hidden, others = [], []
    for q, row in enumerate(batch.answers()):
        for answer in row:
            ids, places = torch.tensor([[*PROMPTS[q], *answer]]), slice(len(PROMPTS[q]) - 1, -1)
            hidden.append(plain.model(input_ids=ids).last_hidden_state[0, places])
            with torch.no_grad():
                others.append(teacher.model.model(input_ids=ids).last_hidden_state[0, places])
    mine, theirs = torch.cat(hidden)[None], torch.cat(others)[None]
    mask = torch.ones(mine.shape[:2])
    heads = plain.lm_head.weight, teacher.model.lm_head.weight.detach()
    _chunked_divergence_loss(mine, theirs, *heads, mask, alpha)[0].backward()
    wanted = torch.cat([value.grad.flatten() for value in plain.parameters()])
    assert wanted.norm() > 1e-3
    assert (got - wanted).norm() <= 1e-6 * wanted.norm()


def test_a_batch_is_informative_if_an_answer_is_taught():
    recorded = [[(0.0,) * len(one) for one in row] for row in batch.answers()]
    found = []
    for words in ([], ["algorithm.include_feedback=false"]):
        who = batch.algorithm("sdpo", *words)
        who.begin(Words(), SimpleNamespace(max_tokens=64, encode_prompt=lambda hints, tools=(): [5, 6]), None)
        groups = batch.groups(who, recorded, rewards=((0.1, 0.2, 0.3),) * 3)
        found.append(who.experience(groups, 0).informative())
    assert found == [True, False]  # No answer passed, so only feedback teaches.
