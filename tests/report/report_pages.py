"""Run directories for the tests of the report, and the page read back."""

import json
import math
import re
import subprocess
from html.parser import HTMLParser

from completions import completion

from rlvr_exp.core.files import write_json
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import EvalSample, RolloutRow, write_rollouts
from rlvr_exp.records.tracking import Files, Tracker
from rlvr_exp.report import write_report

HOSTILE = '</pre><script>alert(1)</script><img src="https://example.com/x.png"> & "quoted" \'too\''
PROMPT = "I\n12\n34\nO\n21\n43\nT\n56\n78\nP\n"
CONFIG = """stage: grpo
seed: 7
model: {path: '', name: tiny}
data: {_target_: rlvr_exp.domains.arc.tasks.Arc, prompt: {style: bare, grid: compact, shots: 0}}
algorithm: {_target_: rlvr_exp.algorithms.grpo.GRPO}
"""


class Page(HTMLParser):
    """Tags with their attributes, the texts by enclosing tag, and the charts by title."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.stack, self.charts, self.texts, self._title = [], [], {}, [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.tags.append((tag, named))
        if tag not in ("meta", "path", "br"):
            self.stack.append(tag)
        if tag == "figcaption":
            self._title = ""
        if "data-chart" in named:
            self.charts[self._title] = {**json.loads(named["data-chart"]), "paths": []}
        if tag == "path" and self.charts and "c" in named["class"].split()[-1]:
            self.charts[self._title]["paths"].append(named)

    def handle_endtag(self, tag):
        if tag in self.stack:
            while self.stack.pop() != tag:
                pass

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "figcaption":
            self._title += data
        if self.stack and self.stack[-1] not in ("style", "script"):
            self.texts.append((self.stack[-1], data))

    @property
    def text(self):
        return " ".join(text for _, text in self.texts)


def report(run_dir):
    path = write_report(run_dir).path
    text = path.read_text(encoding="utf-8")
    assert path.name == "report.html" and len(text) < 1_500_000
    return Page(text)


def dom_after(run_dir, script):
    """The value of a script's last expression in the written page, by chromium with a window of 1280 pixels."""
    text = (run_dir / "report.html").read_text(encoding="utf-8")
    policy = text[text.index("<meta http-equiv") : text.index('<meta name="viewport"')]
    tail = f"<script>document.title = eval({json.dumps(script)});</script></body>"
    (run_dir / "scripted.html").write_text(text.replace(policy, "").replace("</body>", tail), encoding="utf-8")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom")
    command = ["chromium", *flags, "--window-size=1280,900", f"file://{run_dir}/scripted.html"]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    return dom[dom.index("<title>") + 7 : dom.index("</title>")]


def scored(task, mode, sample, outcome, text, prompt):
    bucket = "wrong_answer" if outcome == "failed" else None
    family = "rotate+crop" if int(task[1:]) % 2 else "flip"
    more = dict(family=family, sample=sample, completion=text, tokens=9, log=f"log of {task}", seconds=0.25)
    return EvalSample(completion(task, outcome, bucket, **more), mode, prompt)


def evaluation(passing, word, prompt=PROMPT):
    answers = [("greedy", 0), *(("sampled", sample) for sample in range(8))]
    return [
        scored(f"t{i}", mode, sample, "passed" if i in passing else "failed", f"{word} answer of t{i}", prompt)
        for i in range(12)
        for mode, sample in answers
    ]


def log(run_dir, steps=40):
    with Tracker(run_dir, Files()) as tracker:
        for step in range(1, steps + 1):
            row = {"reward/mean": math.sin(step / 9), "success/mean": step / (2 * steps), "entropy": 0.2 - step / 1e3}
            row |= {"kl": math.nan if step == 3 else 1e-4 * step, "groups/mixed": 0.6, "groups/failed": 0.4}
            row |= {"time/generate": 0.8, "time/verify": 0.1, "time/update": 1.2, "time/step": 2.1, "odd/metric": 4.0}
            tracker.log(step, row)


def rollouts(run_dir, step, text="def solve(g): return g", log_text="a log", task="t", family="flip"):
    verdicts = (("passed", None), ("failed", "timeout"), ("failed", "memory"), ("passed", None))
    rows = [
        RolloutRow(
            completion(f"{task}{group}", *verdict, family=family, sample=sample, completion=text, tokens=9, log=log_text),
            step, group, PROMPT, reward=0.1 * sample, terms={"cases": 0.1 * sample}, advantage=0.0,
        )
        for group in range(2)
        for sample, verdict in enumerate(verdicts)
    ]  # fmt: skip
    write_rollouts(run_dir, step, rows)


def whole_run(tmp_path):
    """A finished grpo run: t0..t4 pass before, t3..t9 after."""
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "config.yaml").write_text(CONFIG)
    write_json(tmp_path / "manifest.json", {"command": ["python", "-m", "rlvr_exp", "+stage=grpo", "a b"]})
    rates = {when: save(tmp_path, when, evaluation(passing, when))
             for when, passing in (("before", range(5)), ("after", range(3, 10)))}  # fmt: skip
    log(tmp_path)
    for step in range(1, 41):
        rollouts(tmp_path, step)
    plain = {when: {name: rate.to_dict() for name, rate in of.items()} for when, of in rates.items()}
    write_json(
        tmp_path / "summary.json",
        {"stage": "grpo", "status": "completed", "reason": "", "steps": 40, "seconds": 200.4, **plain, "metrics": {}},
    )
    return tmp_path


def coordinates(path):
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([-\d.]+)", path["d"])]
