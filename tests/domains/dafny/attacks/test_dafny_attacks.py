"""No attack passes through the real Dafny, and none leaves the judge without a verdict."""

from collections import Counter

import pytest
from dafny_attacks import ATTACKS, FORGED_RESULTS, OVERLOADS, Attack
from dafny_judge import Judge
from dafny_programs import SORT, SORT_DONE, TOLL
from thinning import thinned

from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.verifiers.base import Verdict

NAMES = [f"{family}: {name}" for family, name, _, _ in ATTACKS]
CHOSEN = thinned(ATTACKS)


@pytest.fixture(scope="module")
def verdicts(judge: Judge) -> dict[str, Verdict]:
    judge.prefetch([(given, candidate) for _, _, given, candidate in CHOSEN])
    return {f"{family}: {name}": judge(given, candidate) for family, name, given, candidate in CHOSEN}


def test_names_are_told_apart_and_every_class_has_several_mechanisms() -> None:
    assert len(set(NAMES)) == len(NAMES)
    counts = Counter(family for family, *_ in ATTACKS)
    assert len(counts) >= 12 and min(counts.values()) >= 3


@pytest.mark.parametrize("name", thinned(NAMES))
def test_attack_is_contained(verdicts: dict[str, Verdict], name: str) -> None:
    verdict = verdicts[name]
    assert verdict.outcome in ("rejected", "failed"), verdict


@pytest.mark.parametrize("attack", thinned(FORGED_RESULTS), ids=[name for _, name, _, _ in thinned(FORGED_RESULTS)])
def test_a_forged_result_adds_nothing_to_the_score(judge: Judge, attack: Attack) -> None:
    assert judge(*attack[2:]).score == judge(TOLL, TOLL + "{ r := 0; }").score


@pytest.mark.parametrize("name", thinned(sorted(OVERLOADS), 6))
def test_overload_is_contained(judge: Judge, name: str) -> None:
    verdict = judge(SORT, OVERLOADS[name], Limits(cpu_s=3))
    assert verdict.outcome in ("rejected", "failed"), verdict


def test_the_judge_still_judges_after_all_of_them(judge: Judge, verdicts: dict[str, Verdict]) -> None:
    assert judge(SORT, SORT_DONE + "// again").outcome == "passed"
    assert judge(SORT, SORT + "// again").outcome == "failed"
