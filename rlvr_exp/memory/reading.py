"""Builds a workload from a checked configuration: its shape, its lengths, its plan.

On a CPU the lengths are those of the data in tokens, so that the plan is for the passes that a run will have and not for the
longest allowed. The checkpoint's own tokenizer.json counts them, without torch. They are unknown if that file is not on this
machine, if prompts grow from turn to turn, and if the data are not here.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from math import ceil
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from rlvr_exp.config.algorithm import SFT, Drawing, ReinforcementLearning
from rlvr_exp.config.architecture import LEARNED, LEAST, Architecture, Scratch, read_architecture, scratch_shape
from rlvr_exp.config.checkpoint_files import tokenizer_folder
from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.engine import is_vllm, receives_weights
from rlvr_exp.config.model import EMBEDDED_MODELS, Model, continued, described, has_adapter
from rlvr_exp.config.needs import config_folder, weights_folder
from rlvr_exp.config.parallel import Device, derive, device, planned
from rlvr_exp.config.roles import TEACHER, longest_sequence, of_role, role_names
from rlvr_exp.config.schema import Config, reads, sampling_node
from rlvr_exp.config.stage_options import ADAPT_RANK, ADAPT_TOKENS
from rlvr_exp.launch.inference_inputs import answered_tasks
from rlvr_exp.launch.preflight import domain_of, rl_split
from rlvr_exp.memory.workload import GIB, WIDTH, Adapter, Colocated, SamplingBatch, Workload
from rlvr_exp.tasks.base import Domain

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TASKS = 1000
"""The most tasks of a split that are read, evenly spread over it."""
MARKUP = 48
"""Tokens that a chat template may add to a prompt with its answer."""
DRAWS = 200
"""Batches that are drawn to see how long the longest of a run is."""


def shape_of(model: Model) -> tuple[Architecture, str]:
    """The model's shape and the type of its weights.

    An existing config.json, in a folder or in the hub's cache, takes precedence over the preset's numbers. The type is
    "bfloat16" if nothing names it.

    Raises:
        ValueError: the file cannot be read.
    """
    if model.random_weights:
        return model.architecture, "bfloat16" if model.dtype == "auto" else model.dtype
    folder = config_folder(model) or Path("/nonexistent")
    try:
        found, stored = read_architecture(folder)
    except (OSError, ValueError, KeyError) as fault:
        raise ValueError(f"{folder / 'config.json'} cannot be read: {fault}") from fault
    dtype = model.dtype if model.dtype != "auto" else stored if stored in WIDTH else "bfloat16"
    if model.scratch == Scratch():
        return (found if found.known else model.architecture), dtype
    embedded = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    options = model.scratch
    # A tokenizer that is made from the data decides the vocabulary alone.
    sizes = {"": embedded["vocab_size"], "bytes": LEAST, **dict.fromkeys(LEARNED, options.vocabulary_size)}
    rows = sizes.get(options.tokenizer)
    return (scratch_shape(options, embedded).architecture(rows) if rows else Architecture()), dtype


def device_of(config: Config) -> Device:
    """The device that the memory table is for."""
    return planned(device(), config.parallel.device, config.parallel.device_memory_gib)


@dataclass(frozen=True)
class Lengths:
    """Tokens of the tasks of a split, none longer than allowed."""

    prompts: Sequence[int]
    answers: Sequence[int]
    """Tokens of the reference answers; 0 for a task without one."""
    every: int = 1
    """Tasks of the split for each task that was read."""

    @property
    def total(self) -> int:
        """Tokens of all examples of imitation in the split."""
        return self.every * sum(self._whole)

    @property
    def _whole(self) -> list[int]:
        return [prompt + answer for prompt, answer in zip(self.prompts, self.answers, strict=True) if answer]

    def prompt(self, number: int) -> int:
        """Mean of `number` prompts in the longest of many batches."""
        return _longest_mean(self.prompts, number, number)

    def example(self, batch: int, size: int) -> tuple[int, int]:
        """(prompt, answer) of the examples of imitation, as means of the longest pass of a sorted batch that is cut into passes
        of `size`."""
        total = _longest_mean(self._whole, batch, size)
        answer = ceil(sum(self.answers) / max(1, sum(map(bool, self.answers))))
        return max(1, total - answer), min(answer, total - 1)


def _longest_mean(values: Sequence[int], batch: int, size: int) -> int:
    rng, values = Random(0), list(values)
    if len(values) <= size:
        return ceil(sum(values) / len(values))
    drawn = (sorted(rng.sample(values, min(batch, len(values)))) for _ in range(DRAWS))
    return ceil(max(sum(one[-size:]) for one in drawn) / size)


class DataLengths:
    """The lengths of a run's data, by split."""

    def __init__(self, config: Config):
        self._config = config
        self._known: dict[str, Lengths | None] = {}
        self._imitates = getattr(config.algorithm, "max_sequence_tokens", 0) if reads(config, "algorithm") else 0

    def of(self, split: str) -> Lengths | None:
        """Lengths of a split, or of the split that is trained on (""). None if they are unknown."""
        if self._sources is None:
            return None
        split = split or ("train" if self._imitates else rl_split(self._sources[0]))
        if split not in self._known:
            self._known[split] = self._read(split, *self._sources)
        return self._known[split]

    @cached_property
    def _sources(self) -> tuple[Domain, "Tokenizer"] | None:
        config = self._config
        if getattr(config.environment, "_target_", SINGLE_TURN) != SINGLE_TURN or len(role_names(config)) > 1:
            return None
        model = config.model
        if model.scratch.tokenizer:  # It is made from the data.
            return None
        weights = EMBEDDED_MODELS / model.embedded if model.is_embedded else weights_folder(model)
        folder = tokenizer_folder(model, weights) if weights else None
        if folder is None or not (folder / "tokenizer.json").is_file() or (domain := domain_of(config)) is None:
            return None
        from tokenizers import Tokenizer

        return domain, Tokenizer.from_file(str(folder / "tokenizer.json"))

    def _read(self, split: str, domain: Domain, tokenizer: "Tokenizer") -> Lengths | None:
        tasks = domain.splits().get(split, ())
        every = -(-len(tasks) // TASKS) or 1
        tasks = tasks[::every]
        if self._imitates:
            tasks = [shown for one in tasks for shown in domain.demonstrations(one)]
        markup = 0 if self._config.model.chat_template == "never" else MARKUP
        answers = [domain.gold_completion(task) or "" if self._imitates else "" for task in tasks]
        texts = [*map(domain.task_prompt, tasks), *answers]
        counts = [len(one.ids) for one in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        pairs = zip((count + markup for count in counts), counts[len(tasks) :], strict=False)
        most = self._imitates or self._config.model.max_prompt_tokens
        kept = [(prompt, answer) for prompt, answer in pairs if prompt + answer <= most]
        if not kept:
            return None
        prompts, golds = zip(*kept, strict=True)
        return Lengths(prompts, golds, every)


def workload_of(config: Config) -> Workload | None:
    """Return the workload, or None if the shape is unknown. If roles have their own models, the largest stands for each.

    Raises:
        ValueError: a config.json cannot be read.
    """
    roles = role_names(config)
    config = max((of_role(config, role) for role in roles or ("",)), key=lambda own: shape_of(own.model)[0].parameters)
    shape, dtype = shape_of(config.model)
    if not shape.known:
        return None
    trains, cpu = reads(config, "optimizer"), not device_of(config).cuda
    read = DataLengths(config) if cpu else None
    prompt, completion, group, limit, share = _lengths(config, read)
    optimizer, patterns = config.optimizer, config.model.freeze
    imitates = reads(config, "algorithm") and isinstance(config.algorithm, SFT)
    examples = read.of("") if read and imitates else None
    zero = config.parallel.deepspeed.get("zero_optimization") or {}
    own = {"bucket": "reduce_bucket_size", "live": "stage3_max_live_parameters"}
    sizes: dict[str, Any] = {name: float(zero[theirs]) for name, theirs in own.items() if theirs in zero}
    found = Workload(
        shape=shape,
        dtype=dtype,
        prompt=prompt,
        completion=completion,
        group=group,
        limit=limit,
        share=share,
        sampling_batch=_sampling_batch(config, share, read),
        cpu=cpu,
        quantization=config.model.quantization.replace("none", ""),
        adapter=_adapter(config.model, shape),
        frozen=sum(size for name, size in shape.named() if any(fnmatchcase(name, one) for one in patterns)),
        optimizer=type(optimizer).__name__ if trains else "",
        momentum=bool(getattr(optimizer, "momentum", 0.0)) if trains else False,
        reference=trains and getattr(config.algorithm, "kl_coef", 0) > 0,
        average=trains and getattr(config.algorithm, "teacher_update_rate", 1.0) < 1.0,
        teacher=_teacher(config),
        value_network=trains and getattr(config.algorithm, "value_trunk", "") == "own",
        checkpointing=config.model.gradient_checkpointing,
        filtered=trains and isinstance(config.algorithm, Drawing) and config.algorithm.filtered,
        strategy=config.parallel.strategy,
        offload=config.parallel.offload,
        **sizes,
        processes=config.parallel.world,
        trains=trains,
        vllm=_vllm(config, dtype),
        served=reads(config, "engine") and receives_weights(config.engine),
        roles=len(roles) or 1,
        examples=examples.total if examples else 0,
    )
    if config.infer is None or config.infer.adapt == "none":
        return found
    adapter = found.adapter or Adapter(ADAPT_RANK, tuple(shape.matrices()))
    group = -(-config.infer.samples // config.infer.adapt_rounds)
    return replace(found, adapter=adapter, optimizer="AdamW", trains=True, group=group, limit=ADAPT_TOKENS)


def _teacher(config: Config) -> Workload | None:
    """The weights of `roles.teacher`, which every device holds whole; None if there are none here, or their shape is unknown."""
    own = config.roles.get(TEACHER)
    if own is None or own.model is None:
        return None
    model = own.model
    shape, dtype = shape_of(model)
    if not shape.known:
        return None
    quantization = model.quantization.replace("none", "")
    return Workload(shape, dtype, 0, 0, 0, 0, 0, SamplingBatch(0, 0, 0, 0), quantization=quantization, trains=False)


def _lengths(config: Config, read: DataLengths | None) -> tuple[int, int, int, int, int]:
    """Prompt, completion and group of the training batch, tokens of a pass, and groups of a process in a step.

    Args:
        read: the lengths of the data; None for a GPU, which is tried with the longest allowed.
    """
    model, algorithm, world = config.model, config.algorithm, config.parallel.world
    completion = model.max_completion_tokens
    if reads(config, "algorithm") and isinstance(algorithm, SFT):
        longest, tokens = algorithm.max_sequence_tokens, algorithm.max_tokens_per_device
        share = -(-algorithm.batch_size // world)
        size = derive(algorithm.batch_size, longest, tokens, world).micro_batch
        answer = min(completion, longest - 1)
        prompt = longest - answer
        if read and (found := read.of("")) is not None and any(found.answers):
            prompt, answer = found.example(share, size)
        return prompt, answer, 1, size * (prompt + answer), share
    if reads(config, "algorithm") and isinstance(algorithm, ReinforcementLearning):
        share = -(-algorithm.prompts_per_step // world)
        prompt = _prompt(config, "", share, read)
        return prompt, completion, algorithm.group_size, algorithm.max_tokens_per_device, share
    return model.max_prompt_tokens, completion, 1, 1, 1


def _prompt(config: Config, split: str, number: int, read: DataLengths | None) -> int:
    """Mean tokens of `number` prompts of a split, or of the split that is trained on ("")."""
    found = read.of(split) if read else None
    return config.model.max_prompt_tokens if found is None else found.prompt(number)


def _sampling_batch(config: Config, share: int, read: DataLengths | None) -> SamplingBatch:
    """The larger of the batches that training and evaluation, or inference, sample at the same time."""
    model, algorithm, node = config.model, config.algorithm, sampling_node(config)
    measured, options = getattr(config, node), {f"{node}.batch_size": getattr(config, node).batch_size}
    tasks = max(1, measured.batch_size // measured.samples)
    tasks = min(tasks, measured.tasks or tasks, answered_tasks(config) or tasks)
    read = None if getattr(measured, "input", "") else read
    wanted = [(measured.split, tasks, measured.samples)]
    if reads(config, "algorithm") and isinstance(algorithm, ReinforcementLearning):
        at_once = max(1, (algorithm.rollout_batch_size or measured.batch_size) // algorithm.group_size)
        options |= {"algorithm.rollout_batch_size": algorithm.rollout_batch_size}
        wanted.append(("", min(share, at_once), algorithm.group_size))
    length, named = model.max_completion_tokens, tuple(options.items())
    found = (SamplingBatch(n, size, _prompt(config, split, n, read), length, named) for split, n, size in wanted)
    return max(found, key=lambda batch: batch.tokens)


def _vllm(config: Config, dtype: str) -> Colocated | None:
    """vLLM, if it samples."""
    if not (reads(config, "engine") and is_vllm(config.engine)):
        return None
    engine = config.engine
    own = dtype if engine.dtype == "auto" else engine.dtype
    limit = engine.memory_share * device_of(config).memory_gib * GIB
    shapes = {shape_of(of_role(config, role).model) for role in role_names(config) or ("",)}
    return Colocated(own, limit, longest_sequence(config), len(shapes))


def _adapter(model: Model, shape: Architecture) -> Adapter | None:
    if not has_adapter(model):
        return None
    written = described(continued(model))
    rank = int(written.get("r", model.adapter.effective_rank))
    named = written.get("target_modules", model.adapter.targets)
    wanted = {str(name).rpartition(".")[2] for name in named} if isinstance(named, list) else set()
    targets = tuple(name for name in shape.matrices() if not wanted or name in wanted)
    return Adapter(rank, targets, bool(written.get("use_dora", model.adapter.kind == "dora")))


if TYPE_CHECKING:
    from tokenizers import Tokenizer
