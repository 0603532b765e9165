"""Sick and healthy runs by the command line, for the table of diagnoses: `python table_runs.py FOLDER [NAME ...]`.

Each run leaves FOLDER/NAME, and its evidence in `kept/table`. Runs that FOLDER has already are not repeated. Without names:
every run of the table, in less than 15 minutes of an idle core.
"""

import sys
from pathlib import Path

from kept_runs import KEPT, keep
from sick_runs import EXACT, NO_GOLDS, OWN

from rlvr_exp.main import main

SIZE = (
    "data.limit=400", "evaluation.tasks=40", "evaluation.samples=4", "evaluation.greedy=false", "scheduler.warmup_steps=2",
    "run.checkpoint.every_steps=100", "run.inline=true", "sandbox.workers=1",
)  # fmt: skip
RL = ("algorithm.prompts_per_step=5", "algorithm.max_steps=10")
LEARNS = ("algorithm.max_steps=36", "evaluation.tasks=100", "algorithm.prompts_per_step=8")
SHORT = ("algorithm.max_steps=6", "evaluation.tasks=16")
SFT = ("+stage=sft", "algorithm.max_steps=12", "algorithm.batch_size=16")
SICK = {
    # Kinds that other tests build too.
    "constant_reward": ("constant_reward", (OWN, "reward=constant")),
    "upside_down": ("reward_inverted", (OWN, "reward=upside_down")),
    "form_only": ("reward_blind", (OWN, "reward=form")),
    "chance": ("reward_noise", (OWN, "reward=chance")),
    "held_by_kl": ("kl_holds", ("algorithm.kl_coef=1000",)),
    "tiny_norm": ("clipped", ("optimizer.max_grad_norm=1e-9",)),
    "pairs": ("dead_failed", ("algorithm.group_size=2", *EXACT)),
    "too_hard": ("other_tasks", (OWN, "data=hard")),
    "mislabelled": ("golds", (OWN, "data=mislabelled", NO_GOLDS)),
    "timeouts": ("alike", (OWN, "verifier=slow", NO_GOLDS)),
    "dice": ("contradiction", (OWN, "verifier=dice", NO_GOLDS)),
    "leak": ("leak", (OWN, "data=leaky")),
    "same": ("duplicates", (OWN, "data=same")),
    "decay": ("weight_decay", ("optimizer.weight_decay=300",)),
    "frozen": ("untrained", ("model.freeze=[model.layers.*,model.embed_tokens.*]",)),
    "long_warm_up": ("learning_rate", ("scheduler.warmup_steps=1000",)),
    "from_scratch": ("random_policy", ("model.from_scratch=true",)),
    "hot": ("sampling", ("algorithm.temperature=5",)),
    "cold": ("entropy_collapse sampling", ("algorithm.temperature=0.01",)),
    "sgd": ("unmoved", ("optimizer=sgd", "optimizer.lr=1e-6")),
    "cut": ("truncation", ("model.max_completion_tokens=4",)),
    "exploding": ("exploding", ("optimizer.lr=1.0",)),
    "instruct": ("parse", ("data.prompt.style=instruct",)),
    # New kinds.
    "partly_wrong": ("golds other_tasks", (OWN, "data=partly_wrong", NO_GOLDS)),
    "weak_tests": ("other_tasks", (OWN, "data=weak", "verifier=unrun", NO_GOLDS)),
    "one_sign": ("advantages", (OWN, "reward=offset", "algorithm=reinforce")),
    "rate_40_low": ("unmoved learning_rate", ("optimizer.lr=2e-5",)),
    "large_eps": ("unmoved", ("optimizer.eps=1",)),
    "bfloat16": ("unmoved", ("model.dtype=bfloat16", "optimizer.lr=1e-4")),
    "stop_third": ("stop", ("algorithm.stop=['len(']",)),
    "narrow": ("sampling entropy_collapse", ("algorithm.top_p=0.1",)),
    "dying_schedule": ("learning_rate", ("scheduler=polynomial", "scheduler.power=12")),
    "paid_by_noise": ("reward_noise", (OWN, "reward=noisy")),
    "paid_by_brevity": ("reward_hacking", (OWN, "reward=short")),
    "flaky": ("contradiction", (OWN, "verifier=flaky", NO_GOLDS)),
    "overloaded": ("no_verdict", (OWN, "verifier=overloaded", NO_GOLDS, "verifier.max_no_verdict_rate=1")),
    "held_out": ("trained_on_held_out", (OWN, "data=held_out")),
    "adapter_at_full_rate": ("unmoved learning_rate", ("model=tiny_lora", "optimizer.lr=8e-6")),
    "sft_shuffled": ("golds worse", (*SFT, OWN, "data=shuffled", NO_GOLDS, "algorithm.max_steps=30")),
    "sft_rate_too_high": ("exploding", (*SFT, "optimizer.lr=0.1")),
}
"""By name: the expected first causes, and how they are brought about."""
HEALTHY = {
    "healthy": (),
    "healthy_learns": LEARNS,
    "healthy_few": ("evaluation.tasks=1", *SHORT[:1]),
    "healthy_ppo": ("+stage=ppo",),
    "healthy_rloo": ("algorithm=rloo",),
    "healthy_sft": SFT,
    "healthy_srl": ("+stage=srl", "algorithm.max_steps=6", "evaluation.tasks=16"),
    "healthy_staged": ("curriculum=staged", *LEARNS),
    "healthy_lora": ("model=tiny_lora",),
    "healthy_exact": EXACT,
}
LATER = {
    # A first set: 10 of 13 sick ones were named at first sight.
    "muon_too_fast": ("exploding", ("optimizer=muon", "optimizer.matrix_lr=5")),
    "ppo_held_by_kl": ("kl_holds", ("+stage=ppo", "algorithm.kl_coef=50", "algorithm.kl_in=loss")),
    "small_adapter": ("unmoved learning_rate", ("model=tiny_lora", "model.adapter.rank=1", "optimizer.lr=1e-5")),
    "tiny_clip_range": (
        "clip_range",
        ("algorithm.iterations=4", "algorithm.clip_low=1e-6", "algorithm.clip_high=1e-6"),
    ),
    "likely_tokens_alone": ("sampling", ("algorithm.top_k=2", "algorithm.temperature=0.2")),
    "single_task": ("duplicates", ("data.limit=1",)),
    "long_prompts": ("prompts_too_long", ("model.max_prompt_tokens=60",)),
    "entropy_bonus": ("entropy_bonus", ("algorithm.entropy_coef=1",)),
    "zero_rate": ("learning_rate", ("optimizer.lr=1e-30",)),
    "lenient": ("dead_solved one_answer other_tasks", (OWN, "verifier=lenient", *EXACT)),
    "sft_rate_too_low": ("unmoved learning_rate", (*SFT, "optimizer.lr=1e-7")),
    "stop_at_line_end": ("stop", ("algorithm.stop=[return]", "evaluation.stop=[return]")),
    "deaf_parser": ("parse", (OWN, "data=deaf", NO_GOLDS)),
    # A second set: 8 of 10.
    "sgd_clip_small": ("clipped", ("optimizer=sgd", "optimizer.lr=0.1", "optimizer.max_grad_norm=1e-6")),
    "wall_tiny": ("alike", ("sandbox.wall_s=0.002", NO_GOLDS, "verifier.max_no_verdict_rate=1")),
    "strong_kl": ("kl_holds", ("algorithm.kl_coef=20",)),
    "min_p": ("sampling", ("algorithm.min_p=0.9",)),
    "stop_bracket": ("stop", ("algorithm.stop=[']']",)),
    "all_warm_up": ("learning_rate", ("scheduler.warmup_steps=400",)),
    "few_prompts": ("dead_failed", ("algorithm.prompts_per_step=2", "algorithm.group_size=2", *EXACT)),
    "sft_decay": ("weight_decay", (*SFT, "optimizer.weight_decay=300")),
    "sft_frozen": ("untrained", (*SFT, "model.freeze=[model.layers.*,model.embed_tokens.*]")),
    "sft_scratch": ("learning_rate", (*SFT, "model.from_scratch=true", "optimizer.lr=1e-6")),
    # A third set: 10 of 12, and a false alarm on `healthy_reinforce`.
    "ppo_value_rate": ("exploding", ("+stage=ppo", "algorithm.value_lr=5", "algorithm.max_steps=14")),
    "measured_hot": ("sampling", ("evaluation.temperature=4",)),
    "muon_slow": ("unmoved", ("optimizer=muon", "optimizer.matrix_lr=1e-6", "optimizer.lr=1e-6")),
    "reused": ("ratio exploding", ("algorithm.iterations=10", "optimizer.lr=3e-3", "algorithm.max_steps=20")),
    "lora_fast": ("exploding", ("model=tiny_lora", "optimizer.lr=0.5")),
    "adafactor_slow": ("unmoved", ("optimizer=adafactor", "optimizer.lr=1e-7")),
    "one_family": ("one_family", (OWN, "data=one_family", "algorithm.max_steps=24")),
    "hot_both": ("sampling", ("algorithm.temperature=3", "evaluation.temperature=3")),
    "rloo_kl": ("kl_holds", ("algorithm=rloo", "algorithm.kl_coef=30")),
    "half_cut": ("truncation", ("model.max_completion_tokens=8",)),
    "sft_fast": ("exploding", (*SFT, "optimizer.lr=0.05")),
    "sgd_plain": ("unmoved", ("optimizer=sgd", "optimizer.lr=8e-4")),
    "healthy_dapo": ("", ("algorithm=dapo", "algorithm.rollout_steps=2")),
    "healthy_families": ("", ("curriculum=families",)),
    "healthy_hot": ("", ("algorithm.temperature=1.2", "evaluation.temperature=1.2")),
    "healthy_cosine": ("", ("scheduler=cosine", "algorithm=dr_grpo")),
    "healthy_resample": ("", ("algorithm.zero_variance=resample", "algorithm.resample_budget=4")),
    "healthy_kl": ("", ("algorithm.kl_coef=0.02",)),
    "healthy_lr4e4": ("", ("optimizer.lr=4e-4",)),
    "healthy_gspo": ("", ("algorithm=gspo",)),
    "healthy_maxrl": ("", ("algorithm=maxrl", "reward=binary")),
    "healthy_reinforce": ("", ("algorithm=reinforce",)),
    "healthy_muon": ("", ("optimizer=muon",)),
    "healthy_adafactor": ("", ("optimizer=adafactor",)),
    "healthy_sft_lora": ("", (*SFT, "model=tiny_lora")),
    "healthy_ppo_kl": ("", ("+stage=ppo", "algorithm.kl_coef=0.01")),
    "healthy_binary": ("", ("reward=binary", "algorithm.group_size=16")),
}
"""Kinds that were made after the causes. What was not named at first sight was then looked into, and causes were widened."""
NAMES = {**SICK, **{name: ("", given) for name, given in HEALTHY.items()}, **LATER}


def command(name: str) -> list[str]:
    """The overrides of a run; those of its own replace those of the size."""
    given = NAMES[name][1]
    keys = [word.split("=")[0] for word in given]
    stage = [] if "+stage" in keys else ["+stage=grpo"]
    size = SIZE if any("+stage=sft" in word for word in given) else (*SIZE, *RL)
    own = [word for at, word in enumerate(given) if word.split("=")[0] not in keys[at + 1 :]]
    return [*stage, *(word for word in size if word.split("=")[0] not in keys), *own]


def make(folder: Path, names: list[str]) -> None:
    for name in names:
        if not (folder / name / "summary.json").exists():
            print(f"--- {name}", flush=True)
            main([*command(name), f"run.dir={folder / name}"])
        keep(folder / name, KEPT / "table" / f"{name}.json")


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2:] or list(NAMES))
