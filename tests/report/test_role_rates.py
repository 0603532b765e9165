"""The report's sections on roles and measures: the evaluation's rates of each, as numbers and by group."""

from dataclasses import replace

from report_pages import evaluation, report, whole_run

from rlvr_exp.evaluation.saved import save

RATE = {"value": 0.5, "low": 0.25, "high": 0.75, "n": 40, "samples": 2}
ROLES = {
    "writer": {
        "rates": {"functional_coverage": RATE, "bleu": {**RATE, "value": 0.613}, "exact_match_greedy": RATE},
        "by": {
            "length": {"032 to 063": {"functional_coverage": RATE}},
            "family": {"<i>": {"functional_coverage": RATE}},
        },
    }
}


def test_the_rates_of_a_role_are_shown_by_their_names(tmp_path):
    run = whole_run(tmp_path)
    rows = evaluation(range(4), "after")
    save(run, "after", rows, more={"roles": ROLES})
    shown = [text for _, text in report(run).texts]
    assert {"functional coverage", "BLEU", "exact match, greedy", "writer by length", "032 to 063", "<i>"} <= set(shown)
    assert "61.3%" in shown and any("25.0 to 75.0; 40 tasks" in text for text in shown)


def test_a_run_without_roles_has_no_such_part(tmp_path):
    assert not [text for _, text in report(whole_run(tmp_path)).texts if text == "Roles"]


def test_what_a_verifier_measured_is_shown(tmp_path):
    run = whole_run(tmp_path)
    rows = evaluation(range(4), "after")
    found = {"same_syntax": 0.25, "rules": 2.0}
    measured = [
        replace(one, completion=replace(one.completion, verdict=replace(one.verdict, measures=found))) for one in rows
    ]
    save(run, "after", measured)
    shown = [text for _, text in report(run).texts]
    assert {"Measures", "same syntax", "same syntax, greedy"} <= set(shown) and "25.0%" in shown
    assert "rules" in shown and "2.00" in shown and "200.0%" not in shown, "a count is no share"


def test_a_run_without_measures_has_no_such_part(tmp_path):
    assert not [text for _, text in report(whole_run(tmp_path)).texts if text == "Measures"]
