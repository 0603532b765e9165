"""Measures of a solver and a tester: of single episodes in an evaluation, and curves over the steps of a training.

All measures of an episode are in [0, 1], besides success:

| measure | is |
| --- | --- |
| `tests_pass_rate`, `tests_failure_rate` | the share of the tester's valid tests that the program passes, and fails |
| `validity`, `duplicates` | of the lines of tests |
| `mutation_score` | the share of the problem's known wrong programs that the valid tests catch |
| `distinct_behaviour` | different columns of these programs caught, of the valid tests |
| `distinct_shape` | different tests once numbers and texts are masked, of the different tests |
| `coherence`, `coherence_STAGE` | the agreement of outputs with the next ones, up to the output of STAGE |

Measures of a later attempt end with `_attempt_N`. Two outputs agree by the share of checkable items that they have in common: names of
the problem (its function and arguments) and literals (numbers, quoted texts). The last output is also compared with the examples
that were worked out before it, which run against it.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from rlvr_exp.domains.problems.matrix import Matrix, Suite
from rlvr_exp.domains.problems.tested import Tested
from rlvr_exp.episodes.episode import Episode

MASKED = re.compile(r"'[^'\n]*'|\d+")


def measures(of: Tested, episode: Episode) -> dict[str, float]:
    """Of an episode with one chain."""
    matrix = of.matrix(episode)
    found = coherence(of, episode, of.ends(episode)[-1])
    for index, suite in matrix.suites.items():
        attempt = of.attempt_of(episode, index)
        ending = f"_attempt_{attempt + 1}" if attempt else ""
        own = _of_suite(suite, episode.given.programs)
        if lines := of.lines(episode, index):
            own["distinct_shape"] = len({MASKED.sub("_", line) for line in lines}) / len(lines)
        programs = of.programs(episode, index)
        if suite.held and programs:
            own["tests_pass_rate"] = suite.pass_rate(programs[-1])
            own["tests_failure_rate"] = 1 - own["tests_pass_rate"]
        found |= {name + ending: value for name, value in own.items()}
    return found


def _of_suite(suite: Suite, wrong: Sequence[str]) -> dict[str, float]:
    found = {"validity": suite.validity, "duplicates": suite.duplicates / max(1, suite.lines)}
    if wrong:
        found["mutation_score"] = suite.caught(wrong)
        if suite.held:
            behaviours = zip(*(suite.catches[one] for one in wrong), suite.valid, strict=True)
            found["distinct_behaviour"] = len({one for one in behaviours if one[-1]}) / suite.held
    return found


def coherence(of: Tested, episode: Episode, end: int) -> dict[str, float]:
    """Of the chain of a turn, in all and by stage; empty for a chain of one output."""
    chain = of.chain(episode, end)
    agreed = by_stage([*chain.values()], of.testing.names(episode.task), of.examples_held(episode, end))
    of_stages = {f"coherence_{stage}": value for stage, value in zip([*chain][1:], agreed, strict=True)}
    return {"coherence": fmean(agreed), **of_stages} if agreed else {}


WORD = re.compile(r"[A-Za-z_]\w*")
LITERAL = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|(?<![\w.])-?\d+(?:\.\d+)?")
NUMBERING = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)


def checkable(output: str, names: Collection[str]) -> set[str]:
    """The names of a problem and the literals in an output; the numbers of its lines are none."""
    text = NUMBERING.sub("", output)
    found = {word for word in WORD.findall(text) if word in names}
    return found | {one.replace('"', "'") for one in LITERAL.findall(text)}


def agreement(earlier: str, later: str, names: Collection[str]) -> float:
    """The overlap coefficient of what can be checked in two outputs, in [0, 1]."""
    first, second = checkable(earlier, names), checkable(later, names)
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def by_stage(outputs: Sequence[str], names: Collection[str], examples: float | None = None) -> list[float]:
    """The agreement of each output with the next.

    Args:
        examples: the share of the worked examples that the last output, a program, fulfils; None: none is worked out.
    """
    found = [agreement(first, second, names) for first, second in pairwise(outputs)]
    if found and examples is not None:
        found[-1] = fmean([found[-1], examples])
    return found


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
