"""The page in a real Chromium: load, select, curves, filter, search, keyboard, live update, both themes, a phone."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_pages import HOSTILE, rollouts
from viewed import TOKEN, indexed, runs, served

from rlvr_exp.records.tracking import Files, Tracker

api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")]
MILLISECONDS = 60_000
"""Time that a busy machine may take."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs(tmp_path_factory.mktemp("browsed") / "runs")


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    with served(indexed(root, root.parent)) as (_, port):
        yield f"http://127.0.0.1:{port}/?token={TOKEN}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page on the list of runs. No test may leave a message of an error in its console."""
    context = browser.new_context(**getattr(request, "param", {"viewport": {"width": 1280, "height": 800}}))
    context.set_default_timeout(MILLISECONDS)
    api.expect.set_options(timeout=MILLISECONDS)
    opened, faults = context.new_page(), []
    opened.on("pageerror", lambda fault: faults.append(str(fault)))
    opened.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    opened.goto(address)
    opened.wait_for_selector("text=below/begun")
    yield opened
    assert "[object " not in opened.inner_text("body")
    context.close()
    assert faults == []


def go(page: Any, **state: object) -> None:
    page.evaluate("hash => { location.hash = hash; }", "&".join(f"{name}={value}" for name, value in state.items()))


def texts(page: Any, selector: str) -> list[str]:
    return page.locator(selector).all_inner_texts()


def test_runs_are_listed_filtered_sorted_and_selected(page: Any) -> None:
    assert sorted(texts(page, "tbody .status")) == ["completed", "not finished"]
    page.fill("input[name=q]", "completed")
    api.expect(page.locator("tbody tr")).to_have_count(2)
    assert texts(page, "tbody tr th a") == ["first"]
    page.fill("input[name=q]", "")
    api.expect(page.locator("tbody tr")).to_have_count(3)
    page.click("tbody th:text-is('run')")
    page.wait_for_selector("[aria-sort=ascending]:text-is('run')")
    assert texts(page, "tbody tr th a") == ["below/begun", "first"]
    page.check("[aria-label='select first']")
    page.check("[aria-label='select below/begun']")
    page.click("text=curves >> visible=true")
    page.wait_for_selector("figure")
    assert sorted(texts(page, ".legend a")) == ["below/begun", "first"]


def test_a_point_of_a_curve_opens_the_samples_of_its_step(page: Any) -> None:
    go(page, v="curves", run="first")
    plot = page.locator("figure:has-text('reward/mean') .plot")
    plot.wait_for()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60)
    assert re.match(r"step 2[01]\n0\.\d+", plot.locator("output").inner_text())
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 60)
    page.mouse.up()
    page.wait_for_selector("text=/Steps 2[01] to 3[01]/")
    page.locator("figure:has-text('reward/mean') .plot").click(position={"x": 1, "y": 60})
    page.wait_for_selector("text=8 samples.")
    steps = {row.split("\t")[0] for row in texts(page, ".rows tr")[1:]}
    assert len(steps) == 1 and int(steps.pop()) in (20, 21)


def test_filters_and_search(page: Any) -> None:
    go(page, v="samples", run="first")
    page.wait_for_selector("text=536 samples.")
    page.select_option("select[name=outcome]", "failed")
    page.wait_for_selector("text=268 samples.")
    page.fill("input[name=text]", "before answer")
    page.wait_for_selector("text=63 samples.")
    assert len(texts(page, ".rows tr")) == 51 and page.locator("button:text-is('next')").is_enabled()
    page.click(".pages button:text-is('next')")
    page.wait_for_selector("text=51 to 63")
    page.reload()  # The address has the state.
    page.wait_for_selector("text=51 to 63")
    assert page.input_value("input[name=text]") == "before answer"
    page.fill("input[name=high]", "-1")
    page.wait_for_selector("text=0 samples.")
    page.click("button:text-is('clear')")
    page.wait_for_selector("text=536 samples.")
    with page.expect_download() as download:
        page.click("a:text-is('JSON Lines')")
    lines = Path(download.value.path()).read_text().splitlines()
    assert len(lines) == 536 and json.loads(lines[0])["run"] == "first"


def test_keys_walk_through_samples_and_pages(page: Any) -> None:
    go(page, v="samples", run="first", low_step=1)
    page.wait_for_selector("text=428 samples.")
    page.keyboard.press("j")
    page.wait_for_selector(".sample >> text=step 1, group 0, sample 0")
    page.keyboard.press("j")
    page.wait_for_selector(".sample >> text=step 1, group 0, sample 1")
    page.keyboard.press("ArrowUp")
    page.wait_for_selector(".sample >> text=step 1, group 0, sample 0")
    assert "cases 0" in page.inner_text(".sample") and "def solve(g): return g" in page.inner_text(".sample")
    for _ in range(50):
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(20)
    page.wait_for_selector("text=/51 to 100/")
    page.keyboard.press("Escape")
    page.wait_for_selector(".sample", state="detached")


def test_a_sample_shows_its_prompt_and_its_tokens(page: Any) -> None:
    go(page, v="samples", run="below/begun", at="1.3.0")
    page.click("summary:has-text('log-probabilities')")
    assert texts(page, ".sample h4, .sample pre") == ["prompt", "Set x.", "answer", "x = 1", "x = 1<eos>"]
    assert "sum -2.80, mean -0.700" in page.inner_text(".sample")
    assert page.inner_text(".sample details .note").startswith("Least likely: 1 -2.25 x -0.50")
    shades = page.evaluate(
        "[...document.querySelectorAll('.tokens span')].map(one => getComputedStyle(one).backgroundColor)"
    )
    assert len({*shades}) == 4, shades


def test_texts_of_samples_are_no_html(page: Any) -> None:
    go(page, v="samples", run="below/begun", at="1.1.0")
    page.wait_for_selector(".sample pre >> text=alert(1)")
    assert HOSTILE in texts(page, ".sample pre") and page.locator(".sample script, .sample img").count() == 0


def test_an_episode_is_a_conversation_with_its_matrix(page: Any) -> None:
    go(page, v="samples", run="below/begun", at="1.2.1")
    page.wait_for_selector(".turns")
    assert [one.split("passed")[0].strip() for one in texts(page, ".turn h4")] == [
        "solver: plan",
        "solver: code",
        "tester",
    ]
    assert texts(page, ".marks tr:nth-child(3) td")[3:] == ["passes", "caught"]


def test_a_task_before_and_after(page: Any) -> None:
    go(page, v="tasks", run="first")
    page.wait_for_selector("text=12 of 12 tasks")
    page.select_option("select[name=change]", "up")
    page.wait_for_selector("text=5 of 12 tasks")
    page.click("td a:text-is('t5')")
    page.wait_for_selector(".sides")
    assert texts(page, ".sides .answers > div > h4") == ["before training", "after training"]
    assert "before answer of t5" in page.inner_text(".sides") and page.locator(".sides .verdict.passed").count() == 9


def test_a_run_in_progress_moves(page: Any, root: Path) -> None:
    run = root / "live"
    run.mkdir()
    (run / "config.yaml").write_text("stage: grpo\nseed: 0\nalgorithm: {max_steps: 4}\n")
    page.wait_for_selector("a:text-is('live')")
    with Tracker(run, Files()) as tracker:
        tracker.log(1, {"loss": 2.5})
        go(page, v="curves", run="live")
        page.wait_for_selector("figure >> text=2.5")
        tracker.log(2, {"loss": 1.25})
        page.wait_for_selector("figure >> text=1.25")
        page.wait_for_selector("dd:text-is('2 of 4')")
    go(page, v="samples", run="live")
    page.wait_for_selector("text=0 samples.")
    rollouts(run, 1)
    page.wait_for_selector("text=8 samples.")
    assert page.locator("tbody tr:has(td)").count() == 8


VIEWS = (
    {"v": "runs"},
    {"v": "curves", "run": "first"},
    {"v": "samples", "run": "first"},
    {"v": "samples", "run": "below/begun", "at": "1.2.1"},
    {"v": "tasks", "run": "first", "task": "t5"},
)
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_a_phone_scrolls_no_view_sideways(page: Any) -> None:
    for view in VIEWS:
        go(page, **view)
        page.wait_for_selector("figure, .sample, .rows tr, .runs tr >> visible=true")
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, view


@pytest.mark.parametrize("page", [{"color_scheme": scheme} for scheme in ("light", "dark")], indirect=True)
def test_texts_can_be_read_in_both_themes(page: Any, request: pytest.FixtureRequest) -> None:
    """The contrast of texts with what is behind them, as WCAG computes it."""
    for view in VIEWS:
        go(page, **view)
        page.wait_for_selector("figure, .sample, .rows tr, .runs tr >> visible=true")
        page.wait_for_timeout(300)
        weak = page.evaluate(CONTRAST)
        assert weak == [], view
    dark = request.node.callspec.params["page"]["color_scheme"] == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(19, 19, 18)" if dark else "rgb(247, 247, 245)"
    )


CONTRAST = """() => {
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [.2126, .7152, .0722][k], 0);
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const behind = node => { for (; node; node = node.parentElement) { const c = rgb(getComputedStyle(node).backgroundColor); if (c.length < 4 || c[3] > .9) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll('td, th, a, dd, dt, pre, small, span, h3, h4, b, button, label')]
    .filter(node => node.checkVisibility() && [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim()))
    .filter(node => !node.matches('.none, .none *, .counted, button:disabled'))
    .map(node => { const [a, b] = [light(rgb(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x); return [(a + .05) / (b + .05), node.textContent.slice(0, 40), node.className]; })
    .filter(([ratio]) => ratio < 4).slice(0, 5);
}"""
