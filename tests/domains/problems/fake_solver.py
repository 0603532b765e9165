"""A solver and a tester without models: an engine that says what it is told to, by role, stage and sample."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

from adversarial_episode import RIGHT, STAGES
from torch import nn

from rlvr_exp.config.model import Model
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.domains.problems import options
from rlvr_exp.domains.problems.engine import environment_of
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.episodes.types import TokenCount
from rlvr_exp.inference.engine import Engine
from rlvr_exp.rollouts.engines.base import Drawn

BARE = {"id": "t", "text": "Write size(x). It returns x without its sign.", "entry_point": "size"}
ROW = {**BARE, "solution": RIGHT, "tests": [{"args": [3], "expected": 3}, {"args": [-3], "expected": 3}]}
CUT = "..."
"""An output that is cut."""


class Says:
    """Draws the programs of `codes` by sample, the sets of `tests` in turn, and critiques that name what they are about."""

    def __init__(self, codes, tests):
        self.codes, self.tests, self.asked = codes, iter(tests), Counter()

    def draw(self, policy, domain, requests, sampling):
        for place, one in enumerate(requests):
            for sample, key in enumerate(one.keys):
                stage = one.task.inputs.stage
                self.asked[stage] += 1
                text = self.text(stage, one.task.inputs.chain, key)
                yield Drawn(place, sample, TokenCount(2, text == CUT, (-0.25, -0.25)), text)

    def text(self, stage, chain, key):
        number = 0 if key is None else key[key.index("t") + 1]
        if stage == "plan":
            return CUT if self.codes[number] == CUT else f"1. plan {number}"
        if stage == "code":
            return self.codes[number]
        return next(self.tests) if stage == "tests" else f"ok {chain[stage[:-1]][:7]}"


def domain_in(folder: Path, rows=(ROW,), **more) -> Problems:
    (folder / "rows.jsonl").write_text("".join(json.dumps({"split": "test", **row}) + "\n" for row in rows))
    return Problems(path=str(folder), reasoning=STAGES, **more)


def engine_in(folder: Path, verifier, codes, tests=(), environment=None, **infer) -> Engine:
    """With as many samples as programs, and sets as tests."""
    node = environment or options.Adversarial(tests=len(tests))
    shown = environment_of(node, domain_in(folder))
    policy = SimpleNamespace(
        model=nn.Identity(),
        tokenizer=None,
        encode_prompt=lambda text, tools=(): [*map(ord, text)],
        eos_ids=(),
        decode=None,
        max_tokens=9000,
    )
    drawing = {"decoding": "sample", "samples": len(codes)} | infer
    limits = dict.fromkeys(shown.roles, Model(max_prompt_tokens=1000))
    engine = Says(codes, tests)
    policies, words = dict.fromkeys(shown.roles, policy), shown.domain(shown.solver)
    made = Engine(policies, Infer(**drawing), limits, verifier, words, 0, engine, shown)
    made.says = engine
    return made
