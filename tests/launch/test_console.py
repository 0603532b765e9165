"""Progress: rare plain lines without control characters, a bar with the figures on a terminal."""

import io
import os
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_exp.launch import console as progress_module
from rlvr_exp.launch.console import Plain, Progress

STEP = {"kind": "step", "total": 150, "reward": 0.31, "success": 0.25, "phases": {"generate": 0.8, "verify": 0.1}}


def plain(events, total=150):
    out = io.StringIO()
    progress = Progress(total, "grpo", tty=False, out=out)
    for event in events:
        progress.event(event)
    progress.close()
    return out.getvalue().splitlines()


def test_fast_steps_give_their_first_and_their_last_line():
    lines = plain({**STEP, "step": step} for step in range(1, 151))
    assert [line.split()[2] for line in lines] == ["1/150", "150/150"]
    assert lines[0].startswith("grpo step 1/150  reward 0.310  success 25.0%  generate 0.8s  verify 0.1s  [0:0")


def test_a_reader_that_goes_away_does_not_end_the_run():
    read, write = os.pipe()
    os.close(read)
    out = open(write, "w")
    progress = Progress(150, "grpo", tty=False, out=out)
    for step in (1, 75, 150):
        progress.event({**STEP, "step": step})
    progress.close()
    print("what comes at the end", file=out, flush=True)
    assert os.fstat(out.fileno()).st_rdev == os.stat(os.devnull).st_rdev
    out.close()


def test_slow_work_gives_a_line_a_minute_with_the_time_left():
    """Also where a measurement comes between the steps, again and again."""
    out, now = io.StringIO(), [0.0]
    view = Plain(out, lambda: now[0])
    for step in range(1, 101):
        now[0] = step * 3.0
        view.work("grpo step", step, 100, "")
        for done in (0, 5, 10) if step % 4 == 0 else ():
            view.work("evaluate held-out", done, 10, "", "completions")
    lines = out.getvalue().splitlines()
    assert lines[:3] == [
        "grpo step 1/100  [0:03]",
        "evaluate held-out 0/10 completions  [0:12]",
        "evaluate held-out 10/10 completions  [0:12]",
    ]
    steps = [line for line in lines if line.startswith("grpo step")]
    assert [int(line.split()[2].split("/")[0]) for line in steps] == [1, 21, 41, 61, 81, 100]
    assert steps[1] == "grpo step 21/100  [1:03, 3:57 left]" and steps[-1] == "grpo step 100/100  [5:00]"
    assert len(lines) <= 3 + 2 * 5


def test_long_rollouts_do_not_take_the_lines_of_their_steps():
    out, now = io.StringIO(), [0.0]
    view = Plain(out, lambda: now[0])
    for step in range(1, 7):
        for second in range(115):
            now[0] += 1.0
            view.work("rollouts", second // 4, 29, "", "completions", second / 4)
        now[0] += 10.0
        view.work("grpo step", step, 6, "")
    lines = out.getvalue().splitlines()
    assert [line.split()[2] for line in lines if line.startswith("grpo")] == [f"{step}/6" for step in range(1, 7)]
    assert 6 <= sum(line.startswith("rollouts") for line in lines) <= 13


def test_the_time_left_counts_from_what_an_earlier_process_has_done():
    out, now = io.StringIO(), [0.0]
    view = Plain(out, lambda: now[0])
    for done in (400, 410, 420):
        view.work("held out", done, 540, "", "completions")
        now[0] += 60.0
    assert out.getvalue().splitlines()[-1] == "held out 420/540 completions  [2:00, 12:00 left]"


def test_the_time_left_counts_completions_that_have_not_ended():
    """All completions of a batch end late: by those that have ended alone, hours would be left."""
    now, out = [0.0], io.StringIO()
    view = Plain(out, lambda: now[0])
    for seconds, done, worked in ((0, 0, 0.0), (60, 3, 90.0)):
        now[0] = seconds
        view.work("held out", done, 360, "", "completions", worked)
    assert out.getvalue().splitlines()[-1] == "held out 3/360 completions  [1:00, 3:00 left]"


def test_the_work_of_an_event_decides_the_time_left(monkeypatch):
    now, out = [0.0], io.StringIO()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    progress = Progress(0, "evaluate", tty=False, out=out)
    for seconds, done, worked in ((0.0, 0, 0.0), (60.0, 3, 90.0)):
        now[0] = seconds
        progress.event({"kind": "phase", "name": "held out", "done": done, "total": 360, "worked": worked})
    progress.close()
    assert out.getvalue().splitlines()[-1] == "held out 3/360  [1:00, 3:00 left]"


@pytest.mark.parametrize("tty", [False, True])
def test_a_batch_shows_its_completions_and_their_tokens_a_second(tty):
    out = io.StringIO()
    progress = Progress(0, "evaluate", tty=tty, out=out)
    event = {"kind": "phase", "name": "held out", "done": 37, "total": 540, "unit": "completions"}
    progress.event(event | {"tokens_per_second": 1234.5, "success": None})
    progress.event({"kind": "phase", "name": "collect", "done": 3, "total": 9, "completions": 21})
    progress.close()
    for shown in ("held out", "37/540", "completions", "1,234 tokens/s", "21 completions"):
        assert shown in out.getvalue()


def test_every_phase_shows_its_start_and_its_end():
    phases = [("evaluate before", done) for done in (0, 1, 400)] + [("evaluate after", 0)]
    lines = plain({"kind": "phase", "name": name, "done": done, "total": 400} for name, done in phases)
    assert [line.rsplit("  ", 1)[0] for line in lines] == [
        "evaluate before 0/400", "evaluate before 400/400", "evaluate after 0/400"
    ]  # fmt: skip


def test_work_of_unknown_length_is_shown_after_a_second_and_every_minute_until_it_ends():
    out, now = io.StringIO(), [0.0]
    view = Plain(out, lambda: now[0])
    view.wait("imports")
    view.work("check golds", 0, 16, "")  # at once: nothing was waited for
    view.wait("load the policy")
    for second in range(1, 150):
        now[0] = float(second)
        view.tick()
    view.work("evaluate before", 0, 16, "")
    assert [line.split("  [")[0] for line in out.getvalue().splitlines()] == [
        "check golds 0/16", *["load the policy ..."] * 3, "evaluate before 0/16"
    ]  # fmt: skip
    shown = [line[-6:] for line in out.getvalue().splitlines()[1:4]]
    assert shown == ["[0:01]", "[1:01]", "[2:01]"]


def test_work_that_has_done_nothing_yet_is_no_silence():
    out, now = io.StringIO(), [0.0]
    view = Plain(out, lambda: now[0])
    view.work("check golds", 0, 16, "")
    for second in range(1, 122):
        now[0] = float(second)
        view.tick()
    view.work("check golds", 16, 16, "success 100.0%")
    now[0] = 600.0
    view.tick()
    assert out.getvalue().splitlines() == [
        "check golds 0/16  [0:00]", "check golds 0/16 ...  [1:00]", "check golds 0/16 ...  [2:00]",
        "check golds 16/16  success 100.0%  [2:01]",
    ]  # fmt: skip


def test_a_wait_is_shown_while_nothing_else_is_sent(monkeypatch):
    monkeypatch.setattr(progress_module, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(progress_module, "TICK", 0.01)
    out = io.StringIO()
    progress = Progress(1, "grpo", tty=False, out=out)
    progress.event({"kind": "wait", "name": "imports"})
    deadline = time.monotonic() + 20
    while not out.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    progress.close()
    assert out.getvalue().startswith("imports ...  [0:0")


@pytest.mark.parametrize("tty", [False, True])
def test_nothing_is_waited_for_once_the_stage_has_ended(tty):
    progress = Progress(1, "report", tty=tty, out=io.StringIO())
    progress.event({"kind": "wait", "name": "starting: imports"})
    progress.event({"kind": "note", "text": "diagnosis: none"})
    waits = (lambda: progress._view._waiting is not None) if tty else (lambda: bool(progress._view._waiting))
    assert waits(), "a note may be of what goes on"
    progress.event({"kind": "reason", "text": ""})
    assert not waits()
    progress.close()


def test_on_a_terminal_a_wait_goes_when_work_of_known_length_comes():
    out = io.StringIO()
    progress = Progress(1, "grpo", tty=True, out=out)
    progress.event({"kind": "wait", "name": "load the policy"})
    progress.event({"kind": "wait", "name": "start the verifier"})
    assert [task.description for task in progress._view._progress.tasks] == ["start the verifier"]
    progress.event({"kind": "phase", "name": "evaluate before", "done": 3, "total": 4, "success": 0.5})
    assert [task.description for task in progress._view._progress.tasks] == ["evaluate before"]
    progress.close()
    assert "success 50.0%" in out.getvalue()


def test_each_role_has_its_figures():
    (line,) = plain(
        [{"kind": "step", "step": 1, "success": 0.1, "roles": {"writer": {"reward": 0.25}, "annotator": {}}}]
    )
    assert line.startswith("grpo step 1/150  success 10.0%  writer: reward 0.250  [")


@pytest.mark.parametrize("tty", [False, True])
def test_an_unknown_kind_is_refused(tty):
    progress = Progress(1, "grpo", tty, io.StringIO())
    with pytest.raises(ValueError, match="got kind 'stepp', allowed step, phase, wait, note"):
        progress.event({"kind": "stepp", "step": 1})
    progress.close()


@settings(deadline=None)
@given(st.text())
def test_plain_lines_hold_no_control_characters(text):
    lines = plain([{"kind": "note", "text": text}, {"kind": "phase", "name": text, "done": 0, "total": 2}])
    assert all(line.isprintable() for line in lines)


def test_a_table_in_a_note_keeps_its_lines():
    assert plain([{"kind": "note", "text": "a  b\n1  2"}]) == ["a  b", "1  2"]


def test_an_alarm_goes_to_standard_error_and_a_reason_is_kept(capsys):
    out = io.StringIO()
    progress = Progress(1, "grpo", False, out)
    progress.event({"kind": "alarm", "text": "stuck\nhere \x1b[31m"})
    progress.event({"kind": "reason", "text": "no room"})
    assert capsys.readouterr().err == "stuck\nhere  [31m\n" and out.getvalue() == "" and progress.reason == "no room"


def test_a_stage_without_rewards_or_steps_is_shown_too():
    (line,) = plain([{"kind": "step", "step": 0, "loss": 2.5}], total=0)
    assert line.startswith("grpo step 0/0  loss 2.5000  [")


def test_the_bar_shows_the_figures_and_notes_are_not_markup():
    out = io.StringIO()
    progress = Progress(150, "grpo", tty=True, out=out)
    progress.event({**STEP, "step": 3})
    progress.event({"kind": "note", "text": "[bold]kept[/bold] \x1b[31m"})
    progress.close()
    for shown in ("3/150", "reward 0.310  success 25.0%  generate 0.8s", "[bold]kept[/bold]"):
        assert shown in out.getvalue()
    assert "\x1b[31m" not in out.getvalue()


@pytest.mark.heavy
def test_plain_lines_never_import_rich():
    code = "import sys; from rlvr_exp.launch.console import Progress; progress = Progress(1, 's', False);"
    code += "progress.event({'kind': 'note', 'text': 'x'}); sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
