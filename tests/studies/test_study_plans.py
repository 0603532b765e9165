"""The plan of every shipped study, which composes the words of each of its runs."""

from pathlib import Path

import pytest
from thinning import thinned

from rlvr_exp.config import compose
from rlvr_exp.studies.plan import study_plan

STUDIES = {path.stem for path in (Path(__file__).parents[2] / "conf" / "study").glob("*.yaml")}
WITHOUT_A_SPACE = "search"  # The user names what it varies.


@pytest.mark.parametrize("name", thinned(sorted(STUDIES - {WITHOUT_A_SPACE})))
def test_every_study_can_be_planned(name: str) -> None:
    planned = study_plan(compose(["+stage=study", f"study={name}", "study.seeds=[0]"]).config)
    assert "to run" in planned and "_seed0" in planned
