"""The plan of every shipped study, which composes the words of each of its runs."""

from pathlib import Path

import pytest
from thinning import thinned

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.core.errors import InputError
from rlvr_exp.runs.schedule import study_plan
from rlvr_exp.runs.study import check

STUDIES = {path.stem for path in (Path(__file__).parents[2] / "conf" / "study").glob("*.yaml")}
WITHOUT_A_SPACE = "search"  # The user names what it varies.


@pytest.mark.parametrize("name", thinned(sorted(STUDIES - {WITHOUT_A_SPACE})))
def test_every_study_can_be_planned(name: str) -> None:
    planned = study_plan(compose(["+stage=study", f"study={name}", "study.seeds=[0]"]).config)
    assert "to run" in planned and "_seed0" in planned


@pytest.mark.parametrize(
    ("metric", "words", "remedy"),
    [
        ("pass_at_8", ["evaluation.samples=4"], "evaluation.samples=8"),
        ("pass_at_1_greedy", ["evaluation.greedy=false"], "evaluation.greedy=true"),
        ("bits_per_character", [], "evaluation.bits=true"),
        ("voted_at_8_top_2", [], "evaluation.vote=2"),
    ],
)
def test_a_rate_that_no_run_would_measure_is_refused_before_any_is_run(
    metric: str, words: list[str], remedy: str
) -> None:
    def checked(*more: str) -> list[Checked]:
        given = ",".join(f'"{word}"' for word in [*words, *more])
        config = compose(
            ["+stage=study", "study=algorithms", f"study.metric={metric}", f"study.words=[{given}]"]
        ).config
        study = build(config.study)
        return check(study.jobs()[:1], study.rate)

    with pytest.raises(
        InputError, match=f"does not measure {metric}, by which the study answers\n    remedy: {remedy}"
    ):
        checked()
    assert checked(remedy)
