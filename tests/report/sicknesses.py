"""Runs in memory, each sick in one way: the change to a healthy run, and the expected first cause."""

import random
import zlib

from sick_world import World

from rlvr_exp.report.evidence import Share

GOLD = "def solve(g):\n    return [row[::-1] for row in g]"
LATE = 12
"""The step in which a problem during a run starts."""
PAID = {"outcome": "passed", "bucket": None, "reward": 1.0, "terms": {}, "passed": 1}
FAILED = {"outcome": "failed", "reward": -0.09, "terms": {}}


def failing(bucket, log="", **more):
    return lambda row: {**FAILED, "bucket": bucket, "log": log or f"a log about {bucket}", **more}


def silent(row):
    return {"outcome": "no_verdict", "bucket": None, "reward": None, "terms": {}, "log": "worker cannot be reached"}


def one_text(row):
    """All members of a group answer alike; what passes depends on the task."""
    passed = zlib.crc32(row.task.encode()) % 4 == 0
    return {"completion": f"answer to {row.task}", "outcome": "passed" if passed else "failed",
            "bucket": None if passed else "wrong_answer", "reward": float(passed), "terms": {}, "passed": int(passed)}  # fmt: skip


def garbage(row):
    return failing("parse", "line 1: invalid syntax", completion="()(((,,, 3 3 3")(row)


def since(step, change):
    return lambda row: change(row) if row.step >= step else {}


def hacked(row):
    """Long answers are rewarded, and they grow longer; success stays."""
    tokens = 10 + 2 * row.step + row.sample
    return {"tokens": tokens, "reward": tokens / 20, "terms": {"long": tokens / 20}}


def flaky(row):
    passed = random.Random(f"{row.step} {row.group} {row.sample} flaky").random() < 0.5
    return {"task": f"t{row.group}", "completion": f"the usual answer {row.sample % 3}",
            "outcome": "passed" if passed else "failed", "bucket": None if passed else "wrong_answer",
            "reward": float(passed), "terms": {}, "passed": int(passed)}  # fmt: skip


def dice(row):
    paid = random.Random(f"{row.step} {row.group} {row.sample} paid").random()
    return {
        "completion": f"answer {row.sample % 3} to {row.task} {row.outcome}",
        "reward": paid,
        "terms": {"dice": paid},
    }


def easy(row):
    passed = zlib.crc32(f"{row.task} {row.sample}".encode()) % 50 > 0
    return {"completion": f"{row.task} {row.sample}", "outcome": "passed" if passed else "failed", "bucket": None if passed else "wrong_answer",
            "reward": float(passed), "terms": {}, "passed": int(passed)}  # fmt: skip


def slow(row):
    """One answer of each group is the gold."""
    return failing("timeout", **({} if row.sample else {"completion": "the gold"}))(row)


def at_times_slow(row):
    """One answer of each group is the gold, which is out of time for half of the tasks."""
    late = row.sample == 0 and zlib.crc32(row.task.encode()) % 2
    return slow(row) if late else {"completion": "the gold"} | PAID if row.sample == 0 else {}


def apart(row):
    return failing("wrong_answer", completion=f"wrong {row.sample}", reward=-0.001 * row.sample)(row)


def collapsing(step):
    return {"entropy": 0.4 if step < LATE else 0.001}


def rate(value):
    return lambda step: {"learning_rate": value}


SICK = {
    # The eight of the issue.
    "zero learning rate": ("learning_rate", World(row=rate(0.0), gain=0.0)),
    "wrong parser": ("parse", World(change=failing("parse", "no <answer> tag"))),
    "verifier down": ("no_verdict", World(change=silent)),
    "entropy collapse": ("entropy_collapse", World(change=since(LATE, one_text), row=collapsing, gain=0.0)),
    "truncation": ("truncation", World(change=failing("truncated", truncated=True, completion="def sol"))),
    "constant reward": ("constant_reward", World(change=lambda row: {"reward": 0.5, "terms": {"x": 0.5}})),
    "hacked reward": ("reward_hacking", World(change=hacked, gain=0.0)),
    "exploding rate": ("exploding", World(change=since(4, garbage), row=lambda step: {"learning_rate": 1.0})),
    # Others.
    "tiny learning rate": ("learning_rate", World(row=rate(1e-12), gain=0.0)),
    "warm-up without end": (
        "learning_rate",
        World(row=lambda step: {"learning_rate": 6e-9 * step}, config={"scheduler": {"warmup_steps": 10**5}}),
    ),
    "nothing arrives": ("unmoved", World(changed=Share(0, 800), gain=0.0)),
    "loss is no number": ("exploding", World(row=lambda step: {"loss": None} if step > 5 else {})),
    "reward is no number": ("reward_not_finite", World(row=lambda step: {"reward/mean": None, "guard/reward": 1.0})),
    "gradients explode": ("exploding", World(row=lambda step: {"grad_norm": 0.2 * 3.0**step})),
    "no gradient": ("no_gradient", World(row=lambda step: {"grad_norm": 0.0})),
    "clipped away": (
        "clipped",
        World(row=lambda step: {"grad_norm": 3.0, "grad_norm/after": 1e-6}, config={"optimizer": {"_target_": "a.SGD"}}),
    ),
    "KL blow-up": ("kl", World(row=lambda step: {"kl": 1e-4 * 2**step}, rate=0.8, gain=-0.8)),
    "clipped away, of a size-free optimizer": (
        "clipped",
        World(row=lambda step: {"grad_norm": 3.0, "grad_norm/after": 1e-9}, manifest={"model": {"trained": 10**6}}),
    ),
    "stale sampler": ("ratio", World(row=lambda step: {"kl/old": 0.3})),
    "cold sampling": ("entropy_collapse", World(change=one_text, row=lambda step: {"entropy": 1e-4})),
    "one seed for all samples": ("repeats", World(change=one_text)),
    "hot sampling": (
        "sampling",
        World(change=garbage, row=lambda step: {"entropy": 5.0}, config={"algorithm": {"temperature": 5.0}}),
    ),
    "a stop string at once": (
        "stop",
        World(change=failing("parse", completion="def"), config={"algorithm": {"stop": ["def"]}}),
    ),
    "drawn in another way": (
        "sampling",
        World(change=failing("parse", completion="x ("), config={"algorithm": {"top_k": 900}}),
    ),
    "a policy that knows nothing": (
        "random_policy",
        World(change=garbage, garbled=garbage, row=lambda step: {"entropy": 6.0}),
    ),
    "the gold in the prompt": (
        "leak",
        World(change=lambda row: {"prompt": f"{GOLD}\n{row.prompt}"}, gold=GOLD),
    ),
    "one prompt under many names": ("duplicates", World(change=lambda row: {"prompt": "the only one"})),
    "prompts that do not fit": (
        "prompts_too_long",
        World(manifest={"train": {"tasks": 20, "left_out_prompt_too_long": 380}}),
    ),
    "pay for the form": ("reward_blind", World(change=lambda row: {"reward": float(row.bucket != "parse"), "terms": {}})),
    "pay by dice": ("reward_noise", World(change=dice)),
    "pass from the start": ("dead_solved", World(change=easy, garbled=easy)),
    "all but a norm frozen": ("untrained", World(manifest={"model": {"trained": 128, "total": 10**6}})),
    "narrow clipping": (
        "clip_range",
        World(row=lambda step: {"clip/high": 0.3, "clip/low": 0.3}, config={"algorithm": {"clip_high": 1e-6, "clip_low": 0}}),
    ),
    "a strong penalty": (
        "kl_holds",
        World(row=lambda step: {"kl": 0.003, "grad_norm": 0.2 if step < 3 else 90.0}, config={"algorithm": {"kl_coef": 1e3}}),
    ),
    "decay": (
        "weight_decay",
        World(change=since(4, garbage), config={"optimizer": {"weight_decay": 100.0}}),
    ),
    "learned by heart": (
        "overfit",
        World(
            gain=0.6, rate=0.1, change=lambda row: {"task": f"few{row.group}", "prompt": f"prompt of few{row.group}"},
            change_held_out={"pass_at_1": {"value": 0.0, "low": -0.03, "high": 0.03, "n": 100}},
        ),
    ),
    "empty answers": ("empty", World(change=failing("parse", "no program in the answer", completion="", tokens=1))),
    "too hard": ("dead_failed", World(rate=-1.0, gain=0.0, change=failing("wrong_answer"))),
    "too easy": ("dead_solved", World(rate=2.0, gain=0.0, change=lambda row: {"reward": 1.0, "terms": {}})),
    "limits too tight": ("alike", World(change=failing("timeout", "over 0.001 s of CPU"))),
    "a package missing": ("alike", World(change=failing("runtime_error", "ModuleNotFoundError: No module named 'numpy'"))),
    "all called cheats": ("rejected", World(change=lambda row: {"outcome": "rejected", "bucket": None, "rule": "reads_files"})),
    "verifier throws dice": ("contradiction", World(change=flaky)),
    "reward upside down": ("reward_inverted", World(change=lambda row: {"reward": -row.reward, "terms": {}})),
    "advantages upside down": ("advantages", World(change=lambda row: {"advantage": -(row.reward - 0.3)})),
    "a hole in the verifier": (
        "one_answer",
        World(change=since(8, lambda row: {**PAID, "completion": "raise SystemExit(0)"})),
    ),
    "verifier dies half-way": ("no_verdict", World(change=since(LATE, silent))),
    "golds refused": ("golds", World(change=failing("wrong_answer", completion="the gold"), gold="the gold\n")),
    "golds run out of time too": ("alike", World(change=slow, gold="the gold\n")),
    "some golds run out of time": ("alike", World(change=at_times_slow, gold="the gold\n")),
    "nothing ever passes": ("none_pass", World(rate=-1.0, gain=0.0)),
    "held by the reference": (
        "kl_holds",
        World(row=lambda step: {"kl": 1e-5}, config={"algorithm": {"kl_coef": 5.0}}, gain=0.0),
    ),
    "entropy bonus": (
        "entropy_bonus",
        World(change=since(4, garbage), row=lambda step: {"entropy": 0.4 * step}, config={"algorithm": {"entropy_coef": 0.5}}),
    ),
    "hot on both sides": (
        "sampling",
        World(change=garbage, config={"algorithm": {"temperature": 4.0}, "evaluation": {"temperature": 4.0}}),
    ),
    "policy breaks at once": ("exploding", World(change=since(2, garbage), steps=6)),
    "answers grow past the limit": (
        "truncation",
        World(change=since(LATE, failing("truncated", truncated=True)), row=lambda step: {"learning_rate": 1e-4}, rate=-1, gain=0),
    ),
    "a template twice": (
        "template",
        World(change=lambda row: {"prompt": f"<|im_start|>user\n<|im_start|>user\n{row.prompt}"}),
    ),
    "held-out tasks trained on": (
        "trained_on_held_out",
        World(change=lambda row: {"task": f"t0_{row.group}", "prompt": f"prompt of t0_{row.group}"}),
    ),
    "one task alone": (
        "duplicates",
        World(groups=24, change=lambda row: {"task": "t", "prompt": "the only one", "completion": f"{row.outcome} {row.sample}"}),
    ),
    "held-out prompts that do not fit": (
        "prompts_too_long",
        World(garbled=lambda row: failing("prompt_too_long", completion="")(row) if row.group % 2 else {}),
    ),
    "training easier than the held-out tasks": ("other_tasks", World(rate=0.7, garbled=failing("wrong_answer"))),
    "training harder than the held-out tasks": (
        "other_tasks",
        World(rate=0.6, change=lambda row: failing("wrong_answer", reward=-0.001 * row.sample)(row)),
    ),
    "surer, and of less": (
        "sharpening",
        World(change_held_out={
            "pass_at_1": {"value": 0.03, "low": 0.01, "high": 0.05}, "pass_at_8": {"value": -0.1, "low": -0.16, "high": -0.04},
        }),
    ),
    "right and wrong in different groups": (
        "few_mixed",
        World(change=lambda row: PAID if row.group == 0 else apart(row), garbled=lambda row: PAID if row.group == 0 else apart(row)),
    ),
    "values that explain nothing": ("values", World(row=lambda step: {"value/explained_variance": -0.5}, gain=0.0)),
    "no answer ends": (
        "no_end",
        World(change=failing("truncated", truncated=True), garbled=failing("truncated", truncated=True)),
    ),
    "one line without end": (
        "exploding",
        World(change=since(4, failing("truncated", truncated=True, completion="def f(): [[def f(): [[")), row=lambda step: {"entropy": 0.4 if step < 4 else 1e-3}, gain=0.0),
    ),
    "cut, though half can be parsed": (
        "truncation",
        World(change=lambda row: failing("truncated", truncated=True, **({} if row.sample % 2 else {"completion": "def sol"}))(row)),
    ),
}  # fmt: skip
