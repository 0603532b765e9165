"""Names that a user may have meant: the nearest existing name or path, and the names of other trainers.

`algorithm.trl.NAME` takes the fields of the pinned TRL release, except those that the framework sets itself. They are read
from TRL's source; TRL is never imported.
"""

import ast
import difflib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputProblem

NEAR, LIKELY, SURE = 0.5, 0.6, 0.75
"""How similar two names are that may be meant for one another, up to those that hardly mean anything else."""
OTHER_TRAINERS = {
    "max_new_tokens": "model.max_completion_tokens",
    "max_prompt_length": "model.max_prompt_tokens",
    "steps": "algorithm.max_steps",
    "num_steps": "algorithm.max_steps",
    "model_name_or_path": "model.path",
    "dataset_name": "data.path",
    "dataset_path": "data.path",
    "cliprange": "algorithm.clip_low",
    "clip_range": "algorithm.clip_low",
    "clip_epsilon": "algorithm.clip_low",
    "kl_beta": "algorithm.kl_coef",
}
"""Options of ours that other trainers call otherwise; TRL's own names are in `trl_names`."""


def suggest(name: str, names: Iterable[str], cutoff: float = NEAR) -> str:
    """The most similar of the names, without regard to case; empty when none is near."""
    by_lower = {candidate.lower(): candidate for candidate in names}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else ""


def near_path(given: str) -> str:
    """The path with the most similar name in the same folder; empty if none is near."""
    path = Path(given)
    if path.exists() or not path.parent.is_dir():
        return ""
    found = suggest(path.name, (one.name for one in path.parent.iterdir()), SURE)
    return str(path.with_name(found)) if found else ""


SAMPLING = "nothing: rollouts are sampled by this project's own engine, which does not read it"
SINGLE = "nothing: set by the parallel group"
BATCH = "algorithm.max_tokens_per_device; micro-batches are derived"

OURS: dict[str, dict[str, str]] = {
    "SFTConfig": {
        "per_device_train_batch_size": BATCH,
        "max_length": "algorithm.max_sequence_tokens",
        "loss_type": "nothing: imitation has one loss here",
        "completion_only_loss": "nothing: the prompt is always masked",
        "assistant_only_loss": "nothing: the prompt is always masked",
        "eval_strategy": "algorithm.eval_every_steps",
        "eval_steps": "algorithm.eval_every_steps",
        "load_best_model_at_end": "run.select",
        "metric_for_best_model": "run.select",
        "greater_is_better": "run.select",
        "dataset_text_field": "data",
        "dataset_kwargs": "data",
        "dataset_num_proc": "data",
        "chat_template_path": "model.chat_template",
        "eos_token": "model",
        "pad_token": "model",
        "truncation_mode": "nothing: a sequence is never cut; see algorithm.max_sequence_tokens",
        "packing*": BATCH,
        "padding_free": BATCH,
    },
    "GRPOConfig": {
        "per_device_train_batch_size": BATCH,
        "num_generations": "algorithm.group_size",
        "num_generations_eval": "evaluation.samples",
        "generation_batch_size": "algorithm.prompts_per_step; it counts prompts, TRL completions",
        "steps_per_generation": "algorithm.rollout_steps",
        "num_iterations": "algorithm.iterations",
        "max_completion_length": "model.max_completion_tokens",
        "temperature": "algorithm.temperature",
        "epsilon": "algorithm.clip_low",
        "epsilon_high": "algorithm.clip_high",
        "beta": "algorithm.kl_coef",
        "entropy_coef": "algorithm.entropy_coef",
        "ref_model_mixup_alpha": "algorithm.reference_sync_steps",
        "ref_model_sync_steps": "algorithm.reference_sync_steps",
        "sync_ref_model": "algorithm.reference_sync_steps",
        "loss_type": "algorithm",
        "top_entropy_quantile": "nothing: its border would be that of each pass",
        "scale_rewards": "algorithm.advantage_scale",
        "reward_weights": "reward.terms.NAME.weight",
        "multi_objective_aggregation": "reward",
        "mask_truncated_completions": "nothing: a truncated answer fails, and is learned from as a failure",
        "chat_template_kwargs": "model.chat_template",
        "log_completions*": "nothing: rollouts/ holds every completion",
        "log_multimodal": "nothing: rollouts/ holds every completion",
        "log_unique_prompts": "nothing: rollouts/ holds every completion",
        "num_completions_to_print": "nothing: rollouts/ holds every completion",
        "max_tool_calling_iterations": SAMPLING,
        "generation_kwargs": SAMPLING,
        "cache_implementation": SAMPLING,
        "ds3_gather_for_generation": SAMPLING,
        "entropy_coef_*": "algorithm.entropy_step",
        "entropy_target": "algorithm.entropy_target",
        "use_adaptive_entropy": "algorithm.entropy_target",
        "pad_to_multiple_of": SAMPLING,
        "sapo_*": "algorithm=sapo",
        "vespo_*": "algorithm=vespo",
        "min_p": "algorithm.min_p",
        "top_k": "algorithm.top_k",
        "top_p": "algorithm.top_p",
        "repetition_penalty": SAMPLING,
        "transformers_continuous_batching_config": SAMPLING,
        "use_transformers_*": SAMPLING,
        "vllm_importance_sampling_*": "algorithm.correction",
        "*vllm*": "engine=vllm",
        "eval_strategy": "evaluation",
        "eval_steps": "evaluation",
        "load_best_model_at_end": "run.select",
        "metric_for_best_model": "run.select",
        "greater_is_better": "run.select",
    },
}
"""By class: a name, or a pattern of names, that the framework sets, and our key for it."""

EVERYWHERE: dict[str, str] = {
    "output_dir": "run.dir",
    "run_name": "run.dir",
    "seed": "seed",
    "data_seed": "seed",
    "full_determinism": "seed",
    "max_steps": "algorithm.max_steps",
    "num_train_epochs": "algorithm.max_steps",
    "gradient_accumulation_steps": BATCH,
    "per_device_eval_batch_size": "evaluation.batch_size",
    "auto_find_batch_size": BATCH,
    "dataloader_*": "data",
    "remove_unused_columns": "data",
    "length_column_name": "data",
    "label_names": "data",
    "shuffle_dataset": "curriculum",
    "train_sampling_strategy": "curriculum",
    "ignore_data_skip": "curriculum",
    "learning_rate": "optimizer.lr",
    "weight_decay": "optimizer.weight_decay",
    "adam_beta1": "optimizer.beta1",
    "adam_beta2": "optimizer.beta2",
    "adam_epsilon": "optimizer.eps",
    "max_grad_norm": "optimizer.max_grad_norm",
    "optim*": "optimizer",
    "lr_scheduler_type": "scheduler",
    "lr_scheduler_kwargs": "scheduler",
    "warmup_steps": "scheduler.warmup_steps",
    "bf16*": "model.dtype",
    "fp16*": "model.dtype",
    "gradient_checkpointing*": "model.gradient_checkpointing",
    "model_init_kwargs": "model",
    "trust_remote_code": "model.trust_remote_code",
    "use_cache": "model",
    "use_cpu": SINGLE,
    "ddp_*": SINGLE,
    "deepspeed": SINGLE,
    "fsdp*": SINGLE,
    "accelerator_config": SINGLE,
    "parallelism_config": SINGLE,
    "local_rank": SINGLE,
    "average_tokens_across_devices": SINGLE,
    "logging_*": "run.log_every_steps",
    "log_*": "run.log_every_steps",
    "disable_tqdm": "nothing: progress is drawn by the parent process",
    "report_to": "tracking",
    "project": "tracking.project",
    "trackio_*": "tracking",
    "save_*": "run.checkpoint",
    "enable_jit_checkpoint": "run.checkpoint",
    "resume_from_checkpoint": "run.checkpoint",
    "restore_callback_states_from_checkpoint": "run.checkpoint",
    "push_to_hub": "nothing: a run publishes nothing",
    "hub_*": "nothing: a run publishes nothing",
    "do_*": "stage",
    "eval_*": "evaluation",
    "batch_eval_metrics": "evaluation",
    "prediction_loss_only": "evaluation",
    "include_for_metrics": "evaluation",
}


LOSSES = {
    "grpo": "algorithm.loss=grpo",
    "dapo": "algorithm.loss=token",
    "bnpo": "algorithm.loss=token",
    "dr_grpo": "algorithm.loss=dr_grpo",
    "cispo": "algorithm=cispo",
    "sapo": "algorithm=sapo",
    "vespo": "algorithm=vespo",
    "luspo": "algorithm=luspo",
}
"""Our key for each value of TRL's `loss_type`."""


def framework_key(cls: str, name: str) -> str | None:
    """Our key for a field that the framework sets itself; None when the field is free."""
    for table in (OURS[cls], EVERYWHERE):
        for pattern, key in table.items():
            if fnmatchcase(name, pattern):
                return key
    return None


def trl_problems(cls: str, given: Mapping[str, Any], losses: Sequence[str] = ()) -> list[InputProblem]:
    """Problems of a node's `trl` mapping. `losses`: values of `loss_type` that its algorithm takes."""
    loss = given.get("loss_type")
    free = ("loss_type", f"{loss}_*") if loss in losses else ()
    return [problem for name, value in given.items() for problem in _problems(cls, name, value, free)]


def _problems(cls: str, name: str, value: Any, free: Sequence[str]) -> Iterator[InputProblem]:
    where, fields = f"trl.{name}", trl_fields(cls)
    if name not in fields:
        near = suggest(name, fields)
        remedy = f"for {near} set {framework_key(cls, near)}" if near and framework_key(cls, near) else ""
        yield InputProblem(
            where, f"no field of {cls} in TRL {version('trl')}", name, "", near and f"trl.{near}", remedy
        )
        return
    ours = None if any(fnmatchcase(name, pattern) for pattern in free) else framework_key(cls, name)
    if name == "loss_type" and ours == "algorithm":
        what, known = "chosen by the algorithm", LOSSES.get(str(value))
        if value == "bnpo":
            what = "divides by the tokens of a micro-batch, and micro-batches follow from memory here"
        remedy = f"set {known}" if known else "choose an algorithm"
        yield InputProblem(where, what, str(value), "" if known else ", ".join(LOSSES), "", remedy)
    elif ours is not None:
        remedy = "drop it" if ours.startswith("nothing") else f"set {ours}"
        yield InputProblem(where, f"set by the framework; our key for it is {ours}", str(value), "", "", remedy)
    elif not _fits(value, fields[name]):
        yield InputProblem(where, "wrong type", repr(value), fields[name])


def _fits(value: Any, annotation: str) -> bool:
    """Whether a plain value is of the annotated type; types that YAML cannot write are left to TRL itself."""
    plain: dict[str, Any] = {
        "bool": bool,
        "int": int,
        "float": (int, float),
        "str": str,
        "None": type(None),
        "dict": dict,
        "list": list,
    }
    words = [part.strip().split("[")[0] for part in annotation.split("|")]
    if any(word not in plain for word in words):
        return True
    if isinstance(value, bool):
        return "bool" in words
    return any(isinstance(value, plain[word]) for word in words if word != "bool")


BASES = (("transformers", "training_args.py", "TrainingArguments"), ("trl", "trainer/base_config.py", "_BaseConfig"))
FILES = {"GRPOConfig": "trainer/grpo_config.py", "SFTConfig": "trainer/sft_config.py"}


@cache
def trl_fields(cls: str) -> Mapping[str, str]:
    """Name -> annotation, as its source writes it, of all that the class's constructor takes.

    Raises:
        ModuleNotFoundError: TRL or Transformers is not installed.
        StopIteration: a file of the installed release no longer holds its class.
    """
    found: dict[str, str] = {}
    for package, file, name in (*BASES, ("trl", FILES[cls], cls)):
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"{package} is not installed: pip install {package}")
        module = ast.parse((Path(spec.submodule_search_locations[0]) / file).read_text(encoding="utf-8"))
        body = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name).body
        for node in body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = ast.unparse(node.annotation)
    return found
