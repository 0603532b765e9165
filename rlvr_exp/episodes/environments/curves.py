"""The curves of a solver and a tester in training: what solvers pass and testers write, and how far the tests' opinion of programs is
above that of the hidden tests."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from rlvr_exp.episodes.environments.measured import coherence
from rlvr_exp.episodes.environments.tested import Tested
from rlvr_exp.episodes.episode import Episode
from rlvr_exp.episodes.matrix import Matrix


def curves(of: Tested, episodes: Sequence[Episode]) -> dict[str, float]:
    """Of a step. The pass rate and the validity are 0 where no test is valid; the gap is over programs that valid tests ran on."""
    matrices = [of.matrix(episode) for episode in episodes]
    row = _of_tests(matrices) | _of_critiques(of, episodes) | _of_chains(of, episodes)
    rates = [pair for episode, matrix in zip(episodes, matrices, strict=True) for pair in _rates(of, episode, matrix)]
    row["adversarial/pass_rate"] = fmean(rate for rate, _ in rates) if rates else 0.0
    if rates:
        row["adversarial/hidden"] = fmean(hidden for _, hidden in rates)
        row["adversarial/gap"] = row["adversarial/pass_rate"] - row["adversarial/hidden"]
    if episodes:
        row["adversarial/teaching"] = fmean(of.teaches(*pair) for pair in zip(episodes, matrices, strict=True))
        if (stage := episodes[0].given.stage) is not None:
            row["adversarial/stage"] = stage + 1.0
    return row


def _of_tests(matrices: Sequence[Matrix]) -> dict[str, float]:
    suites = [(suite, matrix) for matrix in matrices for suite in matrix.suites.values()]
    row = {"adversarial/validity": fmean(suite.validity for suite, _ in suites) if suites else 0.0}
    if suites:
        row["adversarial/duplicates"] = fmean(suite.duplicates / max(1, suite.lines) for suite, _ in suites)
    caught = [suite.caught(matrix.wrong) for suite, matrix in suites if matrix.wrong]
    return row | ({"adversarial/discrimination": fmean(caught)} if caught else {})


def _of_critiques(of: Tested, episodes: Sequence[Episode]) -> dict[str, float]:
    """The share of critiques that agree with the tests."""
    found = [of.verdict_of_critique(episode, index) for episode in episodes for index in of.critiques_in(episode)]
    judged = [one.outcome == "passed" for one in found if one.outcome != "no_verdict"]
    return {"adversarial/critiques_right": fmean(judged)} if judged else {}


def _of_chains(of: Tested, episodes: Sequence[Episode]) -> dict[str, float]:
    """By name the mean coherence of chains."""
    chains = [coherence(of, episode, end) for episode in episodes for end in of.ends(episode)]
    names = dict.fromkeys(name for chain in chains for name in chain)
    return {f"adversarial/{name}": fmean(one[name] for one in chains if name in one) for name in names}


def _rates(of: Tested, episode: Episode, matrix: Matrix) -> Iterator[tuple[float, float]]:
    """Of each program the share of the valid tests that it passes, and of the hidden ones."""
    for index in of.ends(episode):
        one = episode.turns[index].completion
        program = of.program(episode, index)
        rate = of.opinion(matrix, program) if of.is_code(episode, index) else None
        if rate is not None and one.verdict.outcome != "no_verdict":
            yield rate, one.verdict.score
