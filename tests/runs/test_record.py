"""The page of a study: its own tables by the names of their files, cut where they are long."""

import json

from report_pages import Page

from rlvr_exp.core.measures import BITS, RATE, scale_of
from rlvr_exp.runs.record import MOST_ROWS, study_page


def page_of(**tables) -> Page:
    facts = {"model": "tiny", "started": ""}
    about = {
        "kind": "study",
        "facts": facts,
        "command": ["python"],
        "answer": ["Yes."],
        "options": {},
        "jobs": [],
        "arms": [],
    }
    return Page(study_page("s", {**about, "tables": tables}, {}, {}))


def test_a_long_table_is_cut_and_links_to_its_file() -> None:
    page = page_of(entropy_of_arms=[{"step": step, "low": None} for step in range(5000)])
    assert ("small", f"the first {MOST_ROWS} of 5,000 rows") in page.texts and ("a", "entropy of arms") in page.texts
    assert [named["href"] for tag, named in page.tags if tag == "a"] == ["entropy_of_arms.csv"]
    cells = [text for tag, text in page.texts if tag == "td"]
    assert cells[:4] == ["0", "-", "1", "-"] and len(cells) == 2 * MOST_ROWS


def test_rates_are_shown_in_percent_and_their_differences_in_points_and_files_hold_numbers() -> None:
    row = {"level": RATE.share(0.2812), "gain": RATE.gain(-0.031), "p_holm": 0.2, "bits": scale_of(BITS).share(1.25)}
    cells = [text for tag, text in page_of(short=[row]).texts if tag == "td"]
    assert cells == ["28.1%", "-3.1 points", "0.2", "1.25"]
    assert json.dumps(row) == '{"level": 0.2812, "gain": -0.031, "p_holm": 0.2, "bits": 1.25}'


def test_the_head_names_the_model_and_leaves_out_what_is_unknown() -> None:
    assert [(tag, text) for tag, text in page_of().texts if tag in ("dt", "dd")] == [("dt", "model"), ("dd", "tiny")]


def test_a_table_without_rows_is_left_out() -> None:
    page = page_of(short=[{"arm": "a"}], none=[])
    assert [text for tag, text in page.texts if tag == "h3" or tag == "a"] == ["short"]
