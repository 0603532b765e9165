"""What is measured of an episode of a solver and a tester, beside success; all in [0, 1].

| measure | is |
| --- | --- |
| `tests_pass_rate`, `tests_failure_rate` | the share of the tester's valid tests that the program passes, and fails |
| `validity`, `duplicates` | of the lines of tests |
| `mutation_score` | the share of the problem's known wrong programs that the valid tests catch |
| `distinct_behaviour` | different columns of these programs caught, of the valid tests |
| `distinct_shape` | different tests once numbers and texts are masked, of the different tests |
| `coherence`, `coherence_STAGE` | the agreement of outputs with the next ones (rlvr_exp.episodes.coherence), up to the output of STAGE |

Those of a later attempt end with `_attempt_N`.
"""

import re
from collections.abc import Mapping, Sequence
from statistics import fmean

from rlvr_exp.episodes.coherence import by_stage
from rlvr_exp.episodes.environments.tested import Tested
from rlvr_exp.episodes.episode import Episode
from rlvr_exp.episodes.matrix import Suite

MASKED = re.compile(r"'[^'\n]*'|\d+")


def measures(of: Tested, episode: Episode) -> dict[str, float]:
    """Of an episode with one chain."""
    matrix = of.matrix(episode)
    found = coherence(of, episode, of.ends(episode)[-1])
    for index, suite in matrix.suites.items():
        attempt = of.attempt_of(episode, index)
        ending = f"_attempt_{attempt + 1}" if attempt else ""
        own = {**_of_suite(suite, episode.given.programs), **_of_lines(of, episode, index)}
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


def _of_lines(of: Tested, episode: Episode, index: int) -> dict[str, float]:
    lines = of.lines(episode, index)
    return {"distinct_shape": len({MASKED.sub("_", line) for line in lines}) / len(lines)} if lines else {}


def coherence(of: Tested, episode: Episode, end: int) -> dict[str, float]:
    """Of the chain of a turn, in all and by stage; empty for a chain of one output."""
    chain = of.chain(episode, end)
    agreed = by_stage([*chain.values()], of.testing.names(episode.task), of.examples_held(episode, end))
    return {"coherence": fmean(agreed), **_by_stage(chain, agreed)} if agreed else {}


def _by_stage(chain: Mapping[str, str], agreed: list[float]) -> dict[str, float]:
    return {f"coherence_{stage}": value for stage, value in zip([*chain][1:], agreed, strict=True)}
