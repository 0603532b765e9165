"""The two pages of help: the overview that a bare command prints, and --help. Needs no composed configuration."""

from collections.abc import Iterable, Mapping

from rlvr_exp.config.describe import group_options
from rlvr_exp.config.stages import STAGES

COMMAND = "python -m rlvr_exp"
EXAMPLES = (
    ("+stage=grpo", "train the embedded policy on the embedded tasks; results below outputs/"),
    ("+stage=grpo +experiment=quick", "the same in its smallest form, at most a minute"),
    ("+stage=grpo algorithm.group_size=4,8 seed=0,1 --multirun", "four runs and a table"),
)
COMMON = (
    ("seed=N", "the one seed of a run"),
    ("data.path=DIR", "real data in place of the embedded tasks"),
    ("data.limit=N", "the first N tasks of each split after a seeded shuffle"),
    ("model=NAME, model.path=DIR", "another policy; any local checkpoint"),
    ("algorithm.max_steps=N", "update steps"),
    ("run.dir=DIR", "the run directory; default outputs/DATE/TIME_STAGE, below multirun/ for sweeps"),
    ("run.checkpoint.every_steps=N", "steps between checkpoints"),
    ("run.resume=RUN", "resume a run by its own configuration; no +stage is needed"),
    ("run.dry=true", "check everything, print the plan, run nothing"),
    ("run.inline=true", "run in this process, for a debugger"),
    ("+experiment=quick", "any stage at its smallest real size, at most 60 s"),
    ("hydra.searchpath=[DIR]", "a folder with your own YAML and classes"),
)
EXIT_CODES = (
    ("0", "done"),
    ("1", "a fault of ours"),
    ("2", "bad input; nothing was started or overwritten"),
    ("3", "stopped by a guard; the run directory is intact"),
    ("130", "interrupted; with a checkpoint once a step is done"),
)


def overview() -> str:
    """Every stage in one line, and three commands to begin with."""
    stages = _table((f"+stage={name}", stage.about) for name, stage in STAGES.items())
    examples = _table((f"{COMMAND} {words}", about) for words, about in EXAMPLES)
    head = "Train code models against verifiers."
    return f"{head}\n\nStages:\n{stages}\n\nTo begin with:\n{examples}\n\nMore: {COMMAND} --help"


def usage(flags: Mapping[str, str]) -> str:
    """The full page of --help."""
    head = f"{COMMAND} +stage=NAME [+experiment=NAME] [group=option] [key=value ...] [--multirun]"
    groups = (
        (name, ", ".join(options)) for name, options in group_options().items() if name not in ("stage", "experiment")
    )
    sections = (
        ("Stages", ((f"+stage={name}", stage.about) for name, stage in STAGES.items())),
        ("Experiments", ((f"+experiment={name}", "") for name in group_options()["experiment"])),
        ("Groups, group=option", groups),
        ("Common options", COMMON),
        ("Flags", flags.items()),
        ("Exit codes", EXIT_CODES),
        ("Examples", ((f"{COMMAND} {words}", about) for words, about in EXAMPLES)),
    )
    return "\n\n".join([head, *(f"{title}:\n{_table(rows)}" for title, rows in sections)])


def _table(rows: Iterable[tuple[str, str]]) -> str:
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {about}".rstrip() for name, about in rows)
