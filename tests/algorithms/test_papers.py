"""Each algorithm's gradient of a fixed batch is that of its paper's formula, evaluated naively in float64, to a relative 1e-6.

The references below are read off the papers, one loop a sum; nothing of the package computes in them. Old
log-probabilities differ from the policy's, so that ratios and clipping act; rewards of the last group are all equal.
"""

from copy import deepcopy
from functools import partial
from statistics import fmean, stdev

import fixed_batch as batch
import pytest
import torch
from fixed_batch import LIMIT, PROMPTS, REWARDS, TERM_WEIGHTS

from rlvr_exp.algorithms.packed_layers import Choice

EPS = 1e-6
"""Added to deviations by our implementation, as in the authors' code."""


class Paper:
    """Log-probabilities of every completion: under the policy (with gradient), when drawn, and under the reference. The models
    are in float64."""

    def __init__(self, model, recorded, reference=None):
        self.model = model
        self.now = [[batch.logprobs(self.model, PROMPTS[q], o) for o in row] for q, row in enumerate(batch.answers())]
        self.old = [[torch.tensor(o, dtype=torch.float64) for o in row] for row in recorded]
        if reference is not None:
            with torch.no_grad():
                self.ref = [
                    [batch.logprobs(reference, PROMPTS[q], o) for o in row] for q, row in enumerate(batch.answers())
                ]

    def descent(self, objective: torch.Tensor) -> torch.Tensor:
        """The gradient of the loss, which is minus the objective."""
        (-objective).backward()
        return torch.cat([value.grad.flatten() for value in self.model.parameters() if value.requires_grad])


def normalised(rewards) -> list[float]:
    """DeepSeekMath, section 4.1.2; DAPO, eq. 9; GSPO, eq. 6; MiniMax-M1, eq. 2."""
    if max(rewards) == min(rewards):
        return [0.0] * len(rewards)
    return [(r - fmean(rewards)) / (stdev(rewards) + EPS) for r in rewards]


def clipped(ratio, advantage, low, high):
    return torch.min(ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage)


def grpo(paper: Paper, low=0.2, high=0.2, beta=0.04) -> torch.Tensor:
    """DeepSeekMath, eq. 3, with the KL estimate of eq. 4."""
    prompts = []
    for q, rewards in enumerate(REWARDS):
        answers = []
        for i, advantage in enumerate(normalised(rewards)):
            now, old, ref = paper.now[q][i], paper.old[q][i], paper.ref[q][i]
            tokens = [
                clipped((now[t] - old[t]).exp(), advantage, low, high)
                - beta * ((ref[t] - now[t]).exp() - (ref[t] - now[t]) - 1)
                for t in range(len(now))
            ]
            answers.append(sum(tokens) / len(tokens))
        prompts.append(sum(answers) / len(answers))
    return sum(prompts) / len(prompts)


def grpo_of(paper: Paper, changed, positive=1.0) -> torch.Tensor:
    """GRPO of a batch whose rewards are changed by `changed(prompt, rewards)`, without clipping or KL; advantages above 0
    times a factor."""
    prompts = []
    for q, plain in enumerate(REWARDS):
        answers = []
        for i, advantage in enumerate(normalised(changed(q, plain))):
            advantage *= positive if advantage > 0 else 1.0
            ratio = (paper.now[q][i] - paper.old[q][i]).exp()
            answers.append(sum(ratio * advantage) / len(ratio))
        prompts.append(sum(answers) / len(answers))
    return sum(prompts) / len(prompts)


def best_of_two(_, rewards):
    """PKPO: the mean largest reward of the pairs with each member."""
    return [fmean(max(mine, other) for j, other in enumerate(rewards) if j != i) for i, mine in enumerate(rewards)]


def unlikely(paper: Paper):
    """Rewarding the Unlikely, with beta 0.5; right are rewards above 0.5."""

    def changed(q, rewards):
        sums = [float(old.sum()) for old in paper.old[q]]
        ranks = [sum(other > mine for other in sums) for mine in sums]
        size = len(rewards)
        return [r * (1 - 0.5 * (size - rank) / size) if r > 0.5 else r for r, rank in zip(rewards, ranks, strict=True)]

    return changed


def dr_grpo(paper: Paper, low=0.2, high=0.2) -> torch.Tensor:
    """Dr. GRPO, section 3.2: advantages undivided, token sums over a constant."""
    prompts = []
    for q, rewards in enumerate(REWARDS):
        answers = []
        for i, reward in enumerate(rewards):
            ratio = (paper.now[q][i] - paper.old[q][i]).exp()
            answers.append(sum(clipped(r, reward - fmean(rewards), low, high) for r in ratio) / LIMIT)
        prompts.append(sum(answers) / len(answers))
    return sum(prompts) / len(prompts)


def overlong(tokens: int) -> float:
    """DAPO, eq. 13, with a cache of a fifth of the limit."""
    cache = 0.2 * LIMIT
    if tokens <= LIMIT - cache:
        return 0.0
    return ((LIMIT - cache) - tokens) / cache if tokens <= LIMIT else -1.0


def of_dapo(paper: Paper, term) -> torch.Tensor:
    """The sums of DAPO, eq. 8 and 12, over prompts that eq. 11 lets pass; `term(ratio, log-probability, advantage)`."""
    prompts = []
    for q, plain in enumerate(REWARDS):
        rewards = [r + overlong(len(paper.now[q][i])) for i, r in enumerate(plain)]
        if max(rewards) == min(rewards):
            continue
        tokens = []
        for i, advantage in enumerate(normalised(rewards)):
            ratio = (paper.now[q][i] - paper.old[q][i]).exp()
            tokens += [term(r, p, advantage) for r, p in zip(ratio, paper.now[q][i], strict=True)]
        prompts.append(sum(tokens) / len(tokens))
    return sum(prompts) / len(prompts)


def dapo(paper: Paper, low=0.2, high=0.28) -> torch.Tensor:
    """DAPO, eq. 8, clipped as in eq. 10."""
    return of_dapo(paper, lambda ratio, _, advantage: clipped(ratio, advantage, low, high))


def cispo(paper: Paper, high=4.0) -> torch.Tensor:
    """MiniMax-M1, eq. 4 with the weight of eq. 5."""
    return of_dapo(paper, lambda ratio, logprob, advantage: ratio.detach().clamp(max=1 + high) * advantage * logprob)


def gspo(paper: Paper, low=3e-4, high=4e-4) -> torch.Tensor:
    """GSPO, eq. 5 with the ratio of eq. 7."""
    prompts = []
    for q, rewards in enumerate(REWARDS):
        answers = []
        for i, advantage in enumerate(normalised(rewards)):
            now, old = paper.now[q][i], paper.old[q][i]
            ratio = (sum(now[t] - old[t] for t in range(len(now))) / len(now)).exp()
            answers.append(clipped(ratio, advantage, low, high))
        prompts.append(sum(answers) / len(answers))
    return sum(prompts) / len(prompts)


def rloo(paper: Paper, baseline="group", beta=0.03) -> torch.Tensor:
    """RLOO: the leave-one-out estimator, on the reward of eq. 3; REINFORCE with the mean of all others, or without one."""
    charged = [
        [r - beta * float((paper.old[q][i] - paper.ref[q][i]).sum()) for i, r in enumerate(plain)]
        for q, plain in enumerate(REWARDS)
    ]
    every, prompts = [r for rewards in charged for r in rewards], []
    for q, rewards in enumerate(charged):
        answers = []
        for i, reward in enumerate(rewards):
            batch = (sum(every) - reward) / (len(every) - 1)
            others = {"group": fmean(rewards[:i] + rewards[i + 1 :]), "batch": batch, "none": 0.0}[baseline]
            answers.append((reward - others) * sum(paper.now[q][i]))
        prompts.append(sum(answers) / len(answers))
    return sum(prompts) / len(prompts)


def of_tokens(paper: Paper, advantages, term) -> torch.Tensor:
    """The mean over all tokens of the step; `term(ratio, log-probability, advantage)`."""
    tokens = []
    for q, row in enumerate(paper.now):
        for i, now in enumerate(row):
            tokens += [term((p - o).exp(), p, advantages[q][i]) for p, o in zip(now, paper.old[q][i], strict=True)]
    return sum(tokens) / len(tokens)


def of_answers(paper: Paper, advantages, term) -> torch.Tensor:
    """The mean over answers of a term of their tokens: `term(log-probabilities, when drawn, advantage)`."""
    answers = [
        term(now, paper.old[q][i], advantages[q][i]) for q, row in enumerate(paper.now) for i, now in enumerate(row)
    ]
    return sum(answers) / len(answers)


def maxrl(paper: Paper, low=0.2, high=0.2) -> torch.Tensor:
    """MaxRL, algorithm 1."""
    advantages = [[(r - fmean(rewards)) / fmean(rewards) for r in rewards] for rewards in REWARDS]
    return of_tokens(paper, advantages, lambda ratio, _, advantage: clipped(ratio, advantage, low, high))


def gdpo(paper: Paper, weights=TERM_WEIGHTS, low=0.2, high=0.2) -> torch.Tensor:
    """GDPO: terms normalised in their group, their weighted sum normalised in the batch."""
    sums = []
    for rewards in REWARDS:
        terms = [batch.terms(i, r) for i, r in enumerate(rewards)]
        each = {name: normalised([one[name] for one in terms]) for name in weights}
        sums.append([sum(weights[name] * each[name][i] for name in weights) for i in range(len(rewards))])
    flat = [one for row in sums for one in row]
    advantages = [[(one - fmean(flat)) / (stdev(flat) + EPS) for one in row] for row in sums]
    return of_answers(paper, advantages, lambda now, old, a: sum(clipped((now - old).exp(), a, low, high)) / len(now))


def ssd(paper: Paper) -> torch.Tensor:
    """SSD: minus the cross-entropy of all samples."""
    return of_tokens(paper, [[1.0] * len(rewards) for rewards in REWARDS], lambda _, logprob, __: logprob)


def sapo(paper: Paper, positive=1.0, negative=1.05) -> torch.Tensor:
    """SAPO: the gate 4 / tau * sigmoid(tau (r - 1)) in place of the clip."""

    def gated(now, old, advantage):
        tau = positive if advantage > 0 else negative
        return (4 / tau * torch.sigmoid(tau * ((now - old).exp() - 1)) * advantage).mean()

    return of_answers(paper, [normalised(rewards) for rewards in REWARDS], gated)


def vespo(paper: Paper, positive=(2.0, 3.0), negative=(3.0, 2.0), by_answer=False) -> torch.Tensor:
    """VESPO: phi(W) = W^k exp(lambda (1 - W)), W the product of an answer's ratios."""
    weighed = []
    for q, rewards in enumerate(REWARDS):
        for i, advantage in enumerate(normalised(rewards)):
            k, decay = positive if advantage >= 0 else negative
            whole = (paper.now[q][i] - paper.old[q][i]).sum().exp().detach()
            weighed.append(whole**k * (decay * (1 - whole)).exp() * advantage * paper.now[q][i])
    return sum(one.mean() for one in weighed) / len(weighed) if by_answer else torch.cat(weighed).mean()


def luspo(paper: Paper, low=3e-4, high=4e-4) -> torch.Tensor:
    """LUSPO: GSPO's objective of an answer times its length."""

    def long(now, old, advantage):
        return clipped((now - old).mean().exp(), advantage, low, high) * len(now)

    return of_answers(paper, [normalised(rewards) for rewards in REWARDS], long)


CASES = {
    "grpo": (grpo, 0.4),
    "dr_grpo": (dr_grpo, 0.4),
    "dapo": (dapo, 0.4),
    "gspo": (gspo, 5e-4),
    "cispo": (cispo, 1.5),
    "maxrl": (maxrl, 0.4),
    "gdpo": (gdpo, 0.4),
    "ssd": (ssd, 0.4),
    "sapo": (sapo, 0.4),
    "vespo": (vespo, 0.4),
    "luspo": (luspo, 5e-4),
}
"""The formula, and the sampler's distance from the policy: enough for some ratios to be clipped and others not."""


def both(
    folder, name, formula, drift, on_policy=False, tokens=1000, *words, adapter=False, packed=True, rewards=REWARDS
):
    """(gradient of a real step, gradient of the formula)."""
    who = batch.algorithm(name, *words)
    player = batch.player_of(folder / "policy", adapter)
    plain = deepcopy(player.model)
    recorded = batch.drawn_from(plain, drift)
    given = who.experience(batch.groups(who, recorded, rewards, sampled_at=1 if on_policy else 0), 0)
    made = batch.trainer(folder, who, tokens, player=player)
    base = batch.player_of(folder / "base", False).model if adapter else None
    paper = Paper(plain, recorded, base if made.ref_model is None else batch.doubled(made.ref_model))
    wanted = paper.descent(formula(paper))
    if not packed:
        made._choice = Choice(None, ())
    got = batch.gradient(made, given)
    assert (made._way is not None) == packed
    return got, wanted


def close(got, wanted) -> bool:
    return bool((got - wanted).norm() <= 1e-6 * wanted.norm())


@pytest.mark.parametrize("tokens", [1000, 12])
@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_the_papers_in_any_split(tmp_path, name, tokens):
    formula, drift = CASES[name]
    got, wanted = both(tmp_path, name, formula, drift, tokens=tokens)
    assert wanted.norm() > 1e-3 and close(got, wanted)


@pytest.mark.parametrize(("adapter", "packed"), [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("name", [*CASES, "rloo"])
def test_the_gradient_is_the_papers_with_adapters_and_without_packing(tmp_path, name, adapter, packed):
    formula, drift = CASES.get(name, (rloo, 0.0))
    on_policy = name == "rloo"
    got, wanted = both(tmp_path, name, formula, drift, on_policy, 24, adapter=adapter, packed=packed)
    assert wanted.norm() > 1e-3 and close(got, wanted)


@pytest.mark.parametrize("name", ["grpo", "token"])
def test_vespos_ratio_is_a_product_whatever_the_weights_of_tokens_are(tmp_path, name):
    formula = partial(vespo, by_answer=name == "grpo")
    got, wanted = both(tmp_path, "vespo", formula, 0.4, False, 1000, f"algorithm.loss={name}")
    assert close(got, wanted)


@pytest.mark.parametrize("tokens", [1000, 12])
@pytest.mark.parametrize("baseline", ["group", "batch", "none"])
def test_reinforce_with_any_baseline_is_the_papers_in_any_split(tmp_path, baseline, tokens):
    formula, word = partial(rloo, baseline=baseline), f"algorithm.baseline={baseline}"
    got, wanted = both(tmp_path, "rloo", formula, 0.0, True, tokens, word)
    assert close(got, wanted)


VARIED = {
    "pass_k=2": lambda paper: grpo_of(paper, best_of_two),
    "positive_weight=0.1": lambda paper: grpo_of(paper, lambda _, rewards: rewards, positive=0.1),
    "unlikeliness=0.5": lambda paper: grpo_of(paper, unlikely(paper)),
}
"""Options that keep pass@k, each with its paper's formula."""


@pytest.mark.parametrize("tokens", [1000, 12])
@pytest.mark.parametrize("option", VARIED)
def test_an_option_that_keeps_pass_at_k_is_its_papers_in_any_split(tmp_path, option, tokens):
    words = ["algorithm.kl_coef=0", "algorithm.clip_low=1", "algorithm.clip_high=1e9", f"algorithm.{option}"]
    got, wanted = both(tmp_path, "grpo", VARIED[option], 0.4, False, tokens, *words)
    assert close(got, wanted)
    plain, _ = both(tmp_path / "plain", "grpo", VARIED[option], 0.4, False, tokens, *words[:-1])
    assert not close(plain, wanted)


@pytest.mark.parametrize(
    ("name", "loose"),
    [
        ("grpo", lambda paper: grpo(paper, low=1.0, high=1e9)),
        ("grpo", lambda paper: grpo(paper, beta=0.0)),
        ("dapo", lambda paper: dapo(paper, high=0.2)),
        ("gspo", lambda paper: gspo(paper, low=1.0, high=1e9)),
        ("cispo", lambda paper: cispo(paper, high=1e9)),
        ("maxrl", lambda paper: maxrl(paper, low=1.0, high=1e9)),
        ("gdpo", lambda paper: gdpo(paper, weights=dict.fromkeys(TERM_WEIGHTS, 1.0))),
        ("ssd", lambda paper: of_answers(paper, [[1.0] * 3] * 3, lambda now, _, __: now.mean())),
        ("sapo", lambda paper: sapo(paper, negative=1.0)),
        ("vespo", lambda paper: vespo(paper, negative=(2.0, 3.0))),
        ("luspo", lambda paper: luspo(paper, low=1.0, high=1e9)),
    ],
)
def test_the_batch_tells_the_formulas_terms_apart(tmp_path, name, loose):
    """A formula without its clip range or penalty gives another gradient here: the comparison above can fail."""
    got, wanted = both(tmp_path, name, loose, CASES[name][1])
    assert not close(got, wanted)


def test_a_member_without_a_verdict_is_as_if_it_had_never_been_sampled(tmp_path):
    rewards = (REWARDS[0], (0.2, None, 0.4), REWARDS[2])

    def without(paper: Paper) -> torch.Tensor:
        answers = []
        for q, row in enumerate(rewards):
            judged = [r for r in row if r is not None]
            for i, reward in enumerate(row):
                if reward is not None:
                    ratio = (paper.now[q][i] - paper.old[q][i]).exp()
                    answers.append(sum(clipped(r, reward - fmean(judged), 0.2, 0.2) for r in ratio) / LIMIT)
        return sum(answers) / len(answers)

    got, wanted = both(tmp_path, "dr_grpo", without, 0.4, rewards=rewards)
    assert close(got, wanted)
