"""Runs that are sick, produced by the command line in a single process.

    python tests/report/sick_runs.py FOLDER [full] [NAME ...]

Each leaves FOLDER/NAME/report.html, and its first cause on the terminal. `full`: with the batches of the default run.
Without names: the eight of the tests, and a healthy run; `all`: every run below. Ends with 1 where a first cause
differs
from the intended one.
"""

import json
import sys
from pathlib import Path

from rlvr_exp.main import main
from rlvr_exp.report import write_report

OWN = f"hydra.searchpath=[{Path(__file__).parent / 'sick'}]"
COMMON = (
    "data.limit=400", "evaluation.tasks=16", "evaluation.samples=4", "scheduler.warmup_steps=2",
    "run.checkpoint.every_steps=100", "run.inline=true", "sandbox.workers=1",
)  # fmt: skip
RL = ("algorithm.prompts_per_step=8", "algorithm.max_steps=6")
NO_GOLDS = "verifier.validate=0"
EXACT = tuple(f"reward.terms.{name}.weight=0" for name in ("cases_passed", "syntax", "length", "severity"))
NARROW = ("algorithm.clip_low=1e-6", "algorithm.clip_high=1e-6")
TWICE = ("algorithm.max_steps=12",)
LONG = ("algorithm.max_steps=40", "evaluation.tasks=40")
EIGHT = {
    "learning_rate": ("optimizer.lr=1e-30",),
    "parse": (OWN, "data=deaf", NO_GOLDS),
    "no_verdict": (OWN, "verifier=down", NO_GOLDS, "verifier.max_no_verdict_rate=1"),
    "sampling": ("algorithm.temperature=0.01",),
    "truncation": ("model.max_completion_tokens=4",),
    "constant_reward": (OWN, "reward=constant"),
    "reward_hacking": (OWN, "reward=long", "optimizer.lr=2e-3"),
    "exploding": ("optimizer.lr=1.0",),
}
"""By the expected first cause."""
FURTHER = {
    "upside_down": ("reward_inverted", (OWN, "reward=upside_down")),
    "form_only": ("reward_blind", (OWN, "reward=form")),
    "paid_at_random": ("reward_noise", (OWN, "reward=chance")),
    "held_by_kl": ("kl_holds", ("algorithm.kl_coef=1000", *TWICE)),
    "tiny_norm_sgd": ("clipped", ("optimizer=sgd", "optimizer.lr=0.1", "optimizer.max_grad_norm=1e-9")),
    "tiny_norm_adam": ("clipped", ("optimizer.max_grad_norm=1e-9",)),
    "narrow_clip": ("clip_range", ("algorithm.iterations=4", *NARROW, *TWICE)),
    "stale": ("ratio", ("algorithm.iterations=24", "optimizer.lr=3e-3", "algorithm.max_steps=24")),
    "pairs": ("dead_failed", ("algorithm.group_size=2", *EXACT, "algorithm.prompts_per_step=16")),
    "too_hard": ("other_tasks", (OWN, "data=hard", *EXACT)),
    "too_hard_shaped": ("other_tasks", (OWN, "data=hard")),
    "mislabelled": ("golds", (OWN, "data=mislabelled")),
    "mislabelled_unchecked": ("golds", (OWN, "data=mislabelled", NO_GOLDS)),
    "stop_text": ("stop", ("algorithm.stop=[solve]",)),
    "stop_text_everywhere": ("stop", ("algorithm.stop=[return]", "evaluation.stop=[return]")),
    "timeouts": ("alike", (OWN, "verifier=slow", NO_GOLDS)),
    "no_time": ("alike", ("sandbox.cpu_s=0.0001",)),
    "dice": ("golds", (OWN, "verifier=dice")),
    "dice_unchecked": ("contradiction", (OWN, "verifier=dice", NO_GOLDS)),
    "lenient": ("dead_solved", (OWN, "verifier=lenient", *EXACT)),
    "leak": ("leak", (OWN, "data=leaky")),
    "duplicates": ("duplicates", (OWN, "data=same")),
    "overfit": ("overfit", (OWN, "data=few", "optimizer.lr=2e-3", *LONG)),
    "decay": ("weight_decay", ("optimizer.weight_decay=300", *TWICE)),
    "frozen": ("untrained", ("model.freeze=[model.layers.*,model.embed_tokens.*]", *TWICE)),
    "long_prompts": ("prompts_too_long", ("model.max_prompt_tokens=60",)),
    "warm_up": ("learning_rate", ("scheduler.warmup_steps=100000",)),
    "from_scratch": ("random_policy", ("model.from_scratch=true",)),
    "other_words": ("parse", ("data.prompt.style=instruct",)),
    "hot": ("sampling", ("algorithm.temperature=5",)),
    "sgd": ("unmoved", ("optimizer=sgd", "optimizer.lr=1e-6", *TWICE)),
    "parser_and_rate": ("parse", (OWN, "data=deaf", NO_GOLDS, "optimizer.lr=1e-30")),
    "cut_and_constant": ("truncation", (OWN, "reward=constant", "model.max_completion_tokens=4")),
    "hacked_and_exploding": ("reward_hacking", (OWN, "reward=long", "optimizer.lr=1.0")),
}
"""By name: the expected first cause, and how it is brought about."""
HEALTHY = {
    "healthy": (),
    "healthy_dapo": ("algorithm=dapo", "algorithm.rollout_steps=2"),
    "healthy_ppo": ("+stage=ppo",),
    "healthy_rloo": ("algorithm=rloo",),
    "healthy_lora": ("model=tiny_lora", "optimizer.lr=2e-3"),
    "healthy_sft": ("+stage=sft", "algorithm.max_steps=12"),
    "healthy_longer": LONG,
}
RUNS = {
    **{name: (name, words) for name, words in EIGHT.items()},
    **FURTHER,
    **{name: ("", words) for name, words in HEALTHY.items()},
}
USUAL = ("healthy", *EIGHT)


def words_of(name: str, full: bool) -> list[str]:
    own = RUNS[name][1]
    stage = [word for word in own if word.startswith("+stage=")] or ["+stage=grpo"]
    size = ("algorithm.max_steps=40", "evaluation.tasks=100") if full else COMMON
    size = size if "+stage=sft" in own or full else (*size, *RL)
    # A word of the run's own comes in the place of one of the size.
    keys = {word.split("=")[0] for word in own}
    size = [word for word in size if word.split("=")[0] not in keys]
    return [*stage, *size, *(word for word in own if word not in stage)]


def make(folder: Path, names: list[str], full: bool = False) -> list[str]:
    """Each run in FOLDER/NAME, how it ended in its summary; returns those with another first cause."""
    wrong = []
    for name in names:
        main([*words_of(name, full), f"run.dir={folder / name}"])
        summary = json.loads((folder / name / "summary.json").read_text())
        found = write_report(folder / name).diagnosis.findings
        first = found[0].cause if found else ""
        wrong += [name] if first != RUNS[name][0] else []
        also = ", ".join(one.cause for one in found[1:])
        said = f"{first or 'nothing'}: {found[0].title if found else ''}{f' (also {also})' if also else ''}"
        print(f"{'wrong' if name in wrong else 'right'} {name}: {summary['status']}: {said}", flush=True)
    return wrong


if __name__ == "__main__":
    place, *given = sys.argv[1:]
    wanted = list(RUNS) if "all" in given else [word for word in given if word != "full"] or list(USUAL)
    sys.exit(bool(make(Path(place), wanted, "full" in given)))
