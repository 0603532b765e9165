"""Each algorithm's gradient of a fixed batch is that of its paper's formula, evaluated naively in float64.

The references below are read off the papers, one loop a sum; nothing of the package computes in them. Old
log-probabilities differ from the policy's, so that ratios and clipping act; rewards of the last group are all equal.
"""

from functools import partial
from statistics import fmean, stdev

import fixed_batch as batch
import pytest
import torch
from fixed_batch import LIMIT, PROMPTS, REWARDS

EPS = 1e-6
"""Added to deviations by our implementation, as in the authors' code."""


class Paper:
    """Log-probabilities of every completion: under the policy (with gradient), when drawn, and under the reference."""

    def __init__(self, model, recorded, reference=None):
        self.model = batch.doubled(model)
        self.now = [[batch.logprobs(self.model, PROMPTS[q], o) for o in row] for q, row in enumerate(batch.answers())]
        self.old = [[torch.tensor(o, dtype=torch.float64) for o in row] for row in recorded]
        if reference is not None:
            far = batch.doubled(reference)
            with torch.no_grad():
                self.ref = [[batch.logprobs(far, PROMPTS[q], o) for o in row] for q, row in enumerate(batch.answers())]

    def descent(self, objective: torch.Tensor) -> torch.Tensor:
        """The gradient of the loss, which is minus the objective."""
        (-objective).backward()
        return torch.cat([value.grad.flatten() for value in self.model.parameters()])


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


CASES = {
    "grpo": (grpo, 0.4),
    "dr_grpo": (dr_grpo, 0.4),
    "dapo": (dapo, 0.4),
    "gspo": (gspo, 5e-4),
    "cispo": (cispo, 1.5),
}
"""The formula, and the sampler's distance from the policy: enough for some ratios to be clipped and others not."""


def both(folder, name, formula, drift, on_policy=False, tokens=1000, *words):
    """(gradient of a real step, gradient of the formula)."""
    who = batch.algorithm(name, *words)
    recorded = batch.drawn_from(batch.policy(folder / "same").model, drift)
    given = who.experience(batch.groups(who, recorded, sampled_at=1 if on_policy else 0), 0)
    made = batch.trainer(folder, who, tokens)
    paper = Paper(made.model, recorded, made.ref_model)
    wanted = paper.descent(formula(paper))
    return batch.gradient(made, given), wanted


def close(got, wanted) -> bool:
    return bool((got - wanted).norm() <= 1e-4 * wanted.norm())


@pytest.mark.parametrize("tokens", [1000, 12])
@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_the_papers_in_any_split(tmp_path, name, tokens):
    formula, drift = CASES[name]
    got, wanted = both(tmp_path, name, formula, drift, tokens=tokens)
    assert wanted.norm() > 1e-3 and close(got, wanted)


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
    ],
)
def test_the_batch_tells_the_formulas_terms_apart(tmp_path, name, loose):
    """A formula without its clip range or penalty gives another gradient here: the comparison above can fail."""
    got, wanted = both(tmp_path, name, loose, CASES[name][1])
    assert not close(got, wanted)


def test_a_member_without_a_verdict_is_as_if_it_had_never_been_sampled(tmp_path):
    who = batch.algorithm("dr_grpo")
    recorded = batch.drawn_from(batch.policy(tmp_path / "same").model, 0.4)
    rewards = (REWARDS[0], (0.2, None, 0.4), REWARDS[2])
    given = who.experience(batch.groups(who, recorded, rewards), 0)
    made = batch.trainer(tmp_path, who)
    paper = Paper(made.model, recorded)
    answers = []
    for q, row in enumerate(rewards):
        judged = [r for r in row if r is not None]
        for i, reward in enumerate(row):
            if reward is not None:
                ratio = (paper.now[q][i] - paper.old[q][i]).exp()
                answers.append(sum(clipped(r, reward - fmean(judged), 0.2, 0.2) for r in ratio) / LIMIT)
    assert close(batch.gradient(made, given), paper.descent(sum(answers) / len(answers)))
