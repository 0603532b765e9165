"""The text of run.dry=true: the steps of a run, how its policies learn and answer, its memory, and the files that it reads and writes.

Starts nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.config.algorithm import SFT, Drawing, ReinforcementLearning
from rlvr_exp.config.checkpoint_files import tokenizer_folder
from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.engine import is_server
from rlvr_exp.config.model import EMBEDDED_MODELS, Model, base, has_adapter, is_converted
from rlvr_exp.config.needs import MissingArtifact, config_folder, loads_weights, weights_folder
from rlvr_exp.config.parallel import derive, micro_batches, pieces
from rlvr_exp.config.roles import of_role, role_names
from rlvr_exp.config.run import Select, planned
from rlvr_exp.config.schema import STAGES, Config, reads
from rlvr_exp.config.solutions import GROWS
from rlvr_exp.config.stage_options import STDIN
from rlvr_exp.config.suited import Setting, advice, facts_of
from rlvr_exp.core.measures import counted
from rlvr_exp.launch.inference_inputs import answered_tasks
from rlvr_exp.launch.preflight import left_out_warning, measured_tasks, splits_of
from rlvr_exp.launch.resume import directory_of, steps_of
from rlvr_exp.memory.advice import memory

WRITTEN = ("config.yaml", "manifest.json", "log.txt", "summary.json", "report.html")


def plan(
    config: Config,
    needs: list[MissingArtifact],
    settings: Sequence[Setting] = (),
    differing: Sequence[str] = (),
    left_out: Sequence[str] = (),
    notes: Sequence[tuple[str, str]] = (),
) -> str:
    """The plan as text, one `name: value` per line, followed by the memory of each device as a table.

    Args:
        settings: options that were chosen for the checkpoint.
        differing: options that differ from those of the stage alone.
        left_out: values of an experiment that do not fit the groups chosen on the command line.
        notes: further lines, name and text.
    """
    rows = [*_lines(config, needs), *notes]
    found = {"chosen": settings, "left out": left_out, "differs": differing, "advice": advice(config)}
    rows += [(name, str(text)) for name, texts in found.items() for text in texts]
    lines = [f"{name and name + ':':<12} {text}" for name, text in rows]
    if loads_weights(config):
        lines += ["", *memory(config)]
    return "\n".join(["plan (nothing is run):", *("  " + line for line in lines)])


def _lines(config: Config, needs: list[MissingArtifact]) -> Iterator[tuple[str, str]]:
    yield "stage", f"{config.stage}: {STAGES[config.stage].about}"
    yield "seed", str(config.seed)
    if config.infer is not None:
        yield from _inference(config)
    elif reads(config, "data"):
        limit = f", the first {config.data.limit} of each split" if config.data.limit else ""
        yield "tasks", f"{config.data._target_} from {config.data.path or 'the embedded corpus'}{limit}"
    splits = splits_of(config) if config.infer is None or not config.infer.input else None
    if splits is not None:
        yield "splits", ", ".join(f"{name} {count}" for name, count in splits.sizes.items())
        yield from (("", text) for text in (splits.note,) if text)
        yield from (("warning", text) for text in (left_out_warning(config),) if text)
    sizes = {} if splits is None else splits.sizes
    if reads(config, "model"):
        yield from choices(config)
    if is_server(config.engine):
        named = config.engine.model or "the only model that it lists"
        how = f"{config.engine.concurrency} requests at once, each up to {config.engine.retries + 1} times"
        yield "engine", f"{config.engine.url}, {named}: {how}; asked at the start what it does"
    if reads(config, "optimizer"):
        yield from _training(config)
    if reads(config, "evaluation") and config.benchmark is None:
        yield "evaluation", _evaluation(config, sizes)
    if STAGES[config.stage].algorithm is not None:
        yield "best step", _selection(planned(config), sizes)
    if config.run.resume:
        directory = directory_of(config)
        assert directory is not None, "run.resume names a directory"
        steps = steps_of(directory)
        found = f"after {steps[0].name} of {directory}, where it is sound" if steps else ""
        yield "begins", found or f"from the first step: no checkpoint in {directory}"
    yield "reads", ", ".join(_read(config)) or "nothing"
    writes = directory_of(config) or f"outputs/DATE/TIME_{config.stage}"
    alone = f"{config.index.path}/index.html" if config.index is not None else "nothing"
    direct = STAGES[str(config.stage)].direct
    yield "writes", alone if direct else f"{writes}: {', '.join(_written(config))}"
    for need in needs:
        yield "to fetch", f"{need.problem.got}: {need.command}"


def _training(config: Config) -> Iterator[tuple[str, str]]:
    algorithm: Any = config.algorithm
    yield "steps", str(algorithm.max_steps) if config.benchmark is None else "those of the rounds"
    if isinstance(algorithm, ReinforcementLearning):
        prompts, group = algorithm.prompts_per_step, algorithm.group_size
        roles, target = role_names(config), getattr(config.environment, "_target_", SINGLE_TURN)
        turns = "" if target == SINGLE_TURN else " first, then what the environment asks for"
        if len(roles) != 1:
            turns = f" of the {roles[0]}, then what the environment asks for ({', '.join(roles)})"
        yield "a step", f"{prompts} prompts x {group} completions = {prompts * group} completions{turns}"
        # The passes of a step in which every prompt and completion has the greatest allowed length.
        model, world, limit = config.model, config.parallel.world, algorithm.max_tokens_per_device
        answers = dict.fromkeys(range(group), model.max_completion_tokens)
        packed = pieces([model.max_prompt_tokens] * prompts, [answers] * prompts, limit)
        count = len(micro_batches(packed, limit, world)) // world
        yield (
            "passes",
            f"of at most {limit} tokens, {count} on each process at the longest lengths, fewer at shorter ones",
        )
    elif isinstance(algorithm, SFT):
        if (rounds := config.self_play) is not None:
            tasks = rounds.tasks or "all"
            refined = f", then refined {rounds.refine} times where none passed" * (rounds.refine > 0)
            yield "rounds", f"{rounds.rounds}, each of {tasks} tasks x {rounds.samples} completions{refined}"
        yield "a step", f"{algorithm.batch_size} sequences"
        longest, tokens = algorithm.max_sequence_tokens, algorithm.max_tokens_per_device
        batches = derive(algorithm.batch_size, longest, tokens, config.parallel.world)
        cut = f"{batches.micro_batch} sequences, accumulated {batches.accumulation} times"
        yield "batches", f"micro-batch of {cut}, on each process"


def _evaluation(config: Config, sizes: Mapping[str, int]) -> str:
    """`sizes`: tasks of the splits; empty if the data cannot be read here."""
    wanted = config.evaluation
    tasks = f"at most {counted(wanted.tasks)}" if wanted.tasks else "all tasks"
    if sizes:
        unproved = "at most " if getattr(config.data, "usable", "") == "check" else ""
        tasks = unproved + counted(measured_tasks(config, sizes))
    tasks += f" after the first {wanted.skip}" if wanted.skip else ""
    greedy = " and greedily" if wanted.greedy else ""
    twice = reads(config, "algorithm") and not config.model.from_scratch
    when = "before and after" if twice else "once"
    samples = "1 sample" if wanted.samples == 1 else f"{wanted.samples} samples"
    return f"{tasks} of {wanted.split!r}, {samples} each{greedy}, {when}"


def _selection(wanted: Select, sizes: Mapping[str, int]) -> str:
    if not wanted.active:
        return "none is looked for, the run ends with its last"
    if wanted.every_steps and sizes and not sizes.get(wanted.split):
        wanted = replace(wanted, every_steps=0)
        if not wanted.active:
            return f"none, the run ends with its last: the data has no split {wanted.split!r}"
    by = f"{'highest' if wanted.mode == 'max' else 'lowest'} {wanted.metric}"
    if not wanted.every_steps:
        return by
    size = sizes.get(wanted.split)
    tasks = counted(min(wanted.tasks, size)) if size else f"at most {counted(wanted.tasks)}"
    return f"{by}, every {wanted.every_steps} steps on {tasks} of {wanted.split!r}, {wanted.samples} samples each"


def _inference(config: Config) -> Iterator[tuple[str, str]]:
    options = config.infer
    assert options is not None, "the stage is infer"
    source = options.input or f"{config.data._target_}, split {options.split!r}"
    chosen = f", the first {options.tasks}" if options.tasks else ""
    chosen = f", {len(options.ids)} by their ids" if options.ids else chosen
    yield "tasks", f"{'standard input' if options.input == STDIN else source}{chosen}"
    at_once = min(options.at_once, answered_tasks(config) or options.at_once)
    best = f", best of {options.samples}" if options.samples > 1 else ""
    beams = f" of {options.width}" if options.decoding == "beam" else ""
    verified = "judged" if options.verify else "not judged"
    retries = f", up to {options.max_attempts} attempts" if options.max_attempts > 1 else ""
    adapts = f", {options.adapt_rounds} rounds with an adapter that learns each task" if options.adapt != "none" else ""
    yield "answers", f"{options.decoding}{beams}{best}{adapts}, {verified}{retries}, {counted(at_once)} at once"


def _read(config: Config) -> Iterator[str]:
    if loads_weights(config):
        models = [of_role(config, role).model for role in config.roles if config.roles[role].model]
        yield from dict.fromkeys(map(_model_source, [config.model, *models]))
    if config.infer is not None and config.infer.input:
        yield "standard input" if config.infer.input == STDIN else config.infer.input
    elif reads(config, "data"):
        yield config.data.path or "the embedded corpus"
    if config.evaluate is not None and config.evaluate.baseline:
        yield config.evaluate.baseline
    if config.compare is not None:
        yield from config.compare.runs
    yield from (node.path for node in (config.view, config.index) if node is not None)
    if config.verify is not None:
        yield config.verify.input
    for options in (config.prepare, config.benchmark):
        if path := getattr(options, "path", ""):
            yield path
    if config.rescore is not None:
        yield f"{config.rescore.run}/rollouts"
    if config.solutions is not None:
        options = config.solutions
        yield from filter(None, (options.path, options.input, options.run and f"{options.run}/rollouts"))
    if config.report is not None:
        yield from (config.report.run, *config.report.beside)


def _model_source(model: Model) -> str:
    if model.package and not model.path:
        done = "" if is_converted(model.package) else ", which the run converts first"
        return f"the package {model.package}, as {base(model)}{done}"
    return model.path or model.name or str((EMBEDDED_MODELS / model.embedded).relative_to(EMBEDDED_MODELS.parents[2]))


def _written(config: Config) -> Iterator[str]:
    yield from WRITTEN
    if config.compare is not None:
        yield "compare.json, compare.md"
    if (solutions := config.solutions) is not None:
        yield "solutions.md"
        if solutions.action in GROWS:
            yield solutions.path or "solutions.sqlite"
        if solutions.action == "export":
            yield solutions.output or {"jsonl": "solutions.jsonl", "sft": "sft/"}[solutions.form]
    if config.report is not None:
        yield f"{config.report.run}/report.html"
    if config.verify is not None:
        yield config.verify.output or "verdicts.jsonl"
    if config.infer is not None:
        yield config.infer.output or "answers.jsonl"
        if config.infer.input == STDIN:
            yield "input.jsonl"
    if config.validate is not None:
        yield "validate.jsonl, validate.md"
    if config.prepare is not None:
        yield ", ".join(filter(None, ("prepare.txt", getattr(config.prepare, "output", ""))))
    if reads(config, "benchmark"):
        yield "benchmark.json, benchmark.md"
        return
    if reads(config, "evaluation"):
        yield "evaluation/"
    if reads(config, "optimizer"):
        yield f"metrics.jsonl, metrics.csv, checkpoints/ (every {config.run.checkpoint.every_steps} steps)"
    if reads(config, "curriculum"):
        yield "rollouts/"
    if config.self_play is not None:
        yield f"self_play/, {config.self_play.solutions or 'solutions.sqlite'}"
    if config.rescore is not None:
        yield f"{config.rescore.output or 'rescored.jsonl'}, changed.jsonl, rescore.json, rescore.md"


def choices(config: Config) -> Iterator[tuple[str, str]]:
    """Name and text of each choice, repeated for roles that differ."""
    roles = {"": config, **{f" of {role}": of_role(config, role) for role in config.roles}}
    seen: set[tuple[str, str]] = set()
    for suffix, own in roles.items():
        for name, text in _of_policy(own):
            if (name, text) not in seen:
                seen.add((name, text))
                yield name + suffix, text


def _of_policy(config: Config) -> Iterator[tuple[str, str]]:
    if reads(config, "optimizer") and config.algorithm is not None:
        yield "algorithm", _name(config.algorithm)
        kind = "an adapter" if has_adapter(config.model) else "all weights"
        schedule = _name(config.scheduler).lower()
        yield "rate", f"{config.optimizer.lr:g} for {kind}, by {_name(config.optimizer)}, {schedule} schedule"
    model = config.model
    yield (
        "lengths",
        f"prompts of at most {model.max_prompt_tokens} tokens, completions of {model.max_completion_tokens}",
    )
    drawn = {"training": config.algorithm if reads(config, "algorithm") else None}
    drawn |= {name: getattr(config, name) for name in ("evaluation", "infer") if reads(config, name)}
    parts = [f"{_drawing(node)} in {name}" for name, node in drawn.items() if isinstance(node, Drawing)]
    if parts:
        yield "temperature", "; ".join(parts)
    prompt = getattr(config.data, "prompt", None)
    style, shots = getattr(prompt, "style", "") or "the data's own", getattr(prompt, "shots", 0)
    yield "wording", f"{style}, {shots} solved examples shown" if shots else style
    yield "template", "the server's own" if is_server(config.engine) else _template(model)


def _name(node: Any) -> str:
    return str(node._target_).rpartition(".")[2]


def _drawing(node: Drawing) -> str:
    filters = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
    given = [f"{name} {getattr(node, name):g}" for name, off in filters.items() if getattr(node, name) != off]
    return " with ".join([f"{node.temperature:g}", *filter(None, [", ".join(given)])])


def _template(model: Model) -> str:
    there, system = facts_of(model).chat_template, ", with a system message" if model.system else ""
    if there:
        return ("none (not used)" if model.chat_template == "never" else "the tokenizer's chat template") + system
    if model.chat_template == "never":
        return f"none (the tokenizer has none){system}"
    weights = config_folder(model)
    if weights and not weights_folder(model):  # The tokenizer may be here without the weights.
        folder = tokenizer_folder(model, weights)
        if folder and (folder / "tokenizer_config.json").is_file():
            remedy = "if the model has one in a file of its own, chat_template.jinja, copy it too"
            return f"none: the tokenizer in {folder} has no chat template; {remedy}{system}"
    if not model.random_weights and not weights_folder(model):
        return f"the tokenizer's chat template, if it has one: not fetched yet{system}"
    return f"none (the tokenizer has none){system}"
