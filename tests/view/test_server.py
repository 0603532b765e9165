"""The server of the page: what it answers, and the requests that it refuses."""

import csv
import io
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest
from report_pages import HOSTILE
from viewed import TOKEN, ask, indexed, runs, served

from rlvr_exp.view.index import AFTER, BEFORE

SECRET = "the content of a file beside the runs"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "secret.txt").write_text(SECRET)
    root = runs(folder / "runs")
    (root / "first" / "report.html").write_text("<script>1</script> the report")
    (root / "below" / "begun" / "report.html").symlink_to(folder / "secret.txt")
    with served(indexed(root, folder)) as (_, port):
        yield port


def answer(port: int, path: str, **values: object) -> object:
    response = ask(port, f"/{path}?{urlencode(values)}")
    text = response.read().decode()
    assert response.status == 200, text
    return json.loads(text)


def test_the_address_opens_the_page_and_sets_the_cookie(port: int) -> None:
    response = ask(port, f"/?token={TOKEN}", Cookie="")
    assert response.status == 200 and b"view.js" in response.read()
    cookie = response.getheader("set-cookie")
    assert cookie.startswith(f"rlvr_view={TOKEN};") and "HttpOnly" in cookie and "SameSite=strict" in cookie
    policy = response.getheader("content-security-policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    for path, kind in (("/view.js", "text/javascript"), ("/view.css", "text/css")):
        assert ask(port, path).getheader("content-type").startswith(kind)


def test_runs_are_sent_only_if_they_have_changed(port: int) -> None:
    first = answer(port, "runs")
    assert [run["path"] for run in first["runs"]] == ["below/begun", "first"]
    assert "runs" not in answer(port, "runs", since=first["generation"])


def test_curves(port: int) -> None:
    found = answer(port, "metrics", run="1,2", name="reward/mean", low=3, high=5)
    assert found["runs"]["2"]["step"] == [3, 4, 5] and found["runs"]["2"]["seconds"] == pytest.approx([6.3, 8.4, 10.5])
    assert len(found["runs"]["2"]["reward/mean"]) == 3 and "kl" in found["names"] and found["runs"]["1"]["step"] == []


def test_samples_are_filtered_sorted_and_paged(port: int) -> None:
    found = answer(port, "samples", run=2, low_step=1, high_step=3, outcome="failed", sort="reward", down=1, most=4)
    assert found["count"] == 12 and [row["reward"] for row in found["rows"]] == pytest.approx([0.2] * 4)
    assert {row["bucket"] for row in found["rows"]} == {"memory"}
    assert found["choices"]["bucket"] == {"wrong_answer": 108, "timeout": 80, "memory": 80}
    last = answer(port, "samples", run=2, low_step=1, high_step=3, outcome="failed", offset=10)
    assert len(last["rows"]) == 2 and answer(port, "samples", run="1,2", task="t11", low_step=AFTER)["count"] == 9


def test_the_search_reads_prompts_answers_and_logs(port: int) -> None:
    def found(text: str) -> int:
        return answer(port, "samples", run=2, text=text)["count"]

    assert found("before answer") == 108 and found("solve") == found("def solve(g") == 320
    assert found("t11") == 18, "of a log, which no other sample has"
    assert found("56") == 536, "of the prompt, which a file has once for its group"
    assert found("sol") == 320 and found("solve nowhere") == 0 and found('"*)(:') == 536


def test_a_sample_with_its_texts(port: int) -> None:
    found = answer(port, "sample", run=2, place=3, row=6)
    assert found["completion"] == found["answer"] == "def solve(g): return g" and found["thoughts"] == ""
    assert (found["prompt"][:4], found["terms"], found["turns"], found["matrix"]) == ("I\n12", {"cases": 0.2}, [], None)
    assert answer(port, "sample", run=1, place=1, row=0)["completion"] == HOSTILE


def test_an_episode_is_shown_with_its_turns_and_its_tests(port: int) -> None:
    found = answer(port, "sample", run=1, place=2, row=1)
    assert [turn["about"].get("stage") for turn in found["turns"]] == ["plan", "code", None]
    assert [turn["place"] for turn in found["turns"]] == [0, 1, 3]
    assert [program["program"] for program in found["matrix"]["programs"]] == [
        "def f(x): return x + 1",
        "def f(x): return 2",
    ]
    assert [(test["text"], test["catches"]) for test in found["matrix"]["tests"]] == [
        ("f(1) == 2", []),
        ("f(2) == 3", [1]),
    ]
    other = answer(port, "sample", run=1, place=2, row=2)
    assert [turn["place"] for turn in other["turns"]] == [0, 2], "the tests were written for the other program"


def test_a_task_before_and_after(port: int) -> None:
    tasks = answer(port, "tasks", run=2)
    assert len(tasks) == 12 and tasks[0]["before"] == [9, 9] and tasks[0]["after"] == [0, 9]
    sides = answer(port, "tasks", run=2, task="t5")
    assert [len(sides[side]) for side in ("before", "after")] == [9, 9]
    assert {row["outcome"] for row in sides["after"]} == {"passed"} and sides["before"][0]["prompt"].startswith("I\n")


def test_exports_hold_the_filtered_samples_with_their_texts(port: int) -> None:
    query = urlencode({"run": "1,2", "low_step": BEFORE, "high_step": 2, "outcome": "failed"})
    lines = [json.loads(line) for line in ask(port, f"/export?{query}").read().splitlines()]
    assert (
        len(lines)
        == 4 + 63 + 8
        == answer(port, "samples", run="1,2", low_step=BEFORE, high_step=2, outcome="failed")["count"]
    )
    assert all(line["prompt"] and line["outcome"] == "failed" for line in lines)
    response = ask(port, f"/export?{query}&form=csv")
    assert "attachment" in response.getheader("content-disposition")
    table = list(csv.DictReader(io.StringIO(response.read().decode())))
    assert [row["completion"] for row in table] == [line["completion"] for line in lines]


def test_a_report_has_an_origin_of_its_own(port: int) -> None:
    response = ask(port, "/report?run=2&page=report.html")
    assert b"the report" in response.read()
    policy = response.getheader("content-security-policy")
    assert (
        policy.startswith("sandbox allow-scripts;")
        and "allow-same-origin" not in policy
        and "default-src 'none'" in policy
    )


ATTACKS = {
    "no token": ("/runs", {"Cookie": ""}, 403),
    "no token for the page": ("/", {"Cookie": ""}, 403),
    "a wrong token": ("/?token=guess", {"Cookie": ""}, 403),
    "an empty token": ("/?token=", {"Cookie": "rlvr_view="}, 403),
    "a part of the token": (f"/?token={TOKEN[:-1]}", {"Cookie": ""}, 403),
    "a token that is no ASCII": ("/?token=%C3%A9", {"Cookie": ""}, 403),
    "the token at another place": (f"/runs?token={TOKEN}", {"Cookie": ""}, 403),
    "the cookie of another server": ("/runs", {"Cookie": "rlvr_view=other"}, 403),
    "a rebound host name": ("/runs", {"Host": "evil.example:8000"}, 403),
    "a host name like ours": ("/runs", {"Host": "127.0.0.1.evil.example"}, 403),
    "no host name": ("/runs", {"Host": ""}, 400),
    "another origin": ("/runs", {"Origin": "https://evil.example"}, 403),
    "the origin of another port": ("/runs", {"Origin": "http://127.0.0.1:1"}, 403),
    "an opaque origin": ("/runs", {"Origin": "null"}, 403),
    "a request that another site has begun": ("/export?run=1", {"Sec_Fetch_Site": "cross-site"}, 403),
    "a request from another port": ("/runs", {"Sec_Fetch_Site": "same-site"}, 403),
    "a path above": ("/../secret.txt", {}, 404),
    "a path above, encoded": ("/%2e%2e/secret.txt", {}, 404),
    "a path above, encoded twice": ("/%252e%252e%252fsecret.txt", {}, 404),
    "a path above with backslashes": ("/..%5csecret.txt", {}, 404),
    "an absolute path": ("//etc/passwd", {}, 404),
    "an address in place of a path": ("http://evil.example/runs", {}, 404),
    "a file of a run": ("/first/config.yaml", {}, 404),
    "a path as the page": ("/report?run=2&page=../../secret.txt", {}, 404),
    "an encoded path as the page": ("/report?run=2&page=..%2F..%2Fsecret.txt", {}, 404),
    "an absolute path as the page": ("/report?run=2&page=/etc/passwd", {}, 404),
    "another file as the page": ("/report?run=2&page=config.yaml", {}, 404),
    "a page that links out of the folder": ("/report?run=1&page=report.html", {}, 404),
    "a path as the run": ("/report?run=../secret.txt", {}, 400),
    "a path as a row": ("/sample?run=1&place=1&row=../../secret.txt", {}, 400),
    "a run that does not exist": ("/report?run=77", {}, 404),
    "a sample that does not exist": ("/sample?run=2&place=3&row=900", {}, 404),
    "a negative row": ("/sample?run=2&place=3&row=-1", {}, 404),
    "a number without an end": (f"/sample?run=2&place=3&row={'9' * 5000}", {}, 400),
    "a number past the index": (f"/samples?run={2**80}", {}, 400),
    "SQL as the order": ("/samples?run=2&sort=" + quote("place; DROP TABLE runs"), {}, 400),
    "SQL as a run": ("/samples?run=" + quote("1) OR (1=1"), {}, 400),
    "a path as the form of an export": ("/export?run=2&form=../x", {}, 400),
    "no run": ("/samples", {}, 400),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused(port: int, name: str) -> None:
    target, headers, status = ATTACKS[name]
    response = ask(port, target, **headers)
    body = response.read().decode()
    assert response.status == status, body
    assert SECRET not in body and "root:" not in body and "Traceback" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "get"])
def test_other_methods_are_refused(port: int, method: str) -> None:
    assert ask(port, "/runs", method).status in (400, 405)


def test_values_of_a_filter_are_values(port: int) -> None:
    """Neither SQL nor the language of the search can be written into one."""
    for name in ("task", "family", "role", "outcome", "bucket", "mode", "text"):
        for value in (
            "' OR 1=1 --",
            '") OR ("',
            "x' UNION SELECT facts FROM runs --",
            "completion : solve",
            "NOT solve",
            "%",
        ):
            if name != "text":
                assert answer(port, "samples", run=2, **{name: value})["count"] == 0
            elif not re.search(r"completion|NOT", value):
                answer(port, "samples", run=2, text=value)
    assert answer(port, "samples", run=2, text="completion : solve")["count"] == 0, (
        "three words, of which one is nowhere"
    )
    assert len(answer(port, "runs")["runs"]) == 2
