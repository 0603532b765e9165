"""What an episode of a solver, alone or beside a tester, holds for a reader: programs, tests, critiques."""

from collections import Counter
from statistics import fmean
from typing import Any

from rlvr_exp.episodes.environments.reasoning import InStages, before
from rlvr_exp.episodes.environments.solving import Solving
from rlvr_exp.episodes.episode import Episode
from rlvr_exp.inference.problem_solution import SampledProgram, WrittenTest
from rlvr_exp.tasks.completion import without_thoughts


def parts_of(environment: InStages, episode: Episode, end: int, judged: bool) -> dict[str, Any]:
    """The fields of a `ProblemSolution` that its episode alone decides.

    Args:
        end: the last output of the chosen chain.
        judged: verdicts on programs are a verifier's.
    """
    order, drawn = environment.in_order(episode), Counter[str]()
    for turn in episode.turns:
        drawn[turn.role] += turn.completion.tokens
    found = {
        "sample": order.index(end),
        "stages": environment.chain(episode, end),
        "samples": tuple(sampled(environment, episode, index, judged) for index in order),
        "drawn": dict(drawn),
    }
    return found | (of_tester(environment, episode, end) if isinstance(environment, Solving) else {})


def sampled(environment: InStages, episode: Episode, index: int, judged: bool) -> SampledProgram:
    """What a chain that ends with a turn came to."""
    one = episode.turns[index].completion
    program = one.candidate.text if environment.is_code(episode, index) else None
    rate = None
    if judged and isinstance(environment, Solving):
        rate = environment.opinion(environment.matrix(episode), environment.program(episode, index))
    return SampledProgram(program, rate, one.verdict if judged else None)


def of_tester(environment: Solving, episode: Episode, end: int) -> dict[str, Any]:
    """What the tester says of the chain, and its tests with what they catch."""
    suites, matrix = environment.suites(episode), environment.matrix(episode)
    programs = [environment.program(episode, index) for index in environment.in_order(episode)]
    tests = []
    for place, index in enumerate(suites):
        suite, lines = matrix.suites.get(index), environment.lines(episode, index)
        for number, (line, holds) in enumerate(zip(lines, suite.valid if suite else (), strict=False)):
            caught = (
                at for at, one in enumerate(programs) if suite and one and _catches(suite.catches.get(one), number)
            )
            tests.append(WrittenTest(line, place, holds, tuple(caught)))
    return {
        "critiques": critiques_of(environment, episode, end),
        "tests": tuple(tests),
        "written": tuple(episode.turns[index].completion.text for index in suites),
        "validity": fmean(one.validity for one in matrix.suites.values()) if matrix.suites else None,
    }


def critiques_of(environment: Solving, episode: Episode, end: int) -> dict[str, str]:
    """By stage, of the chain that ends with a turn."""
    chain = [*reversed(before(episode, end)), end]
    found = {
        environment.stage_of(episode, index): without_thoughts(episode.turns[place].completion.text).strip()
        for index in chain
        for place in environment.critiques_of(episode, index)
    }
    return {stage: text for stage, text in found.items() if text}


def _catches(of_program: tuple[bool, ...] | None, number: int) -> bool:
    return of_program[number] if of_program else False
