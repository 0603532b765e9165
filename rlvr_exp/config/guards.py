"""Options of the node `run.guards`: what stops a run, or warns, before it costs a night."""

from dataclasses import dataclass

from rlvr_exp.config.options import option


@dataclass
class Guards:
    """What watches over a run."""

    max_skipped: int = option(5, low=0)
    """Updates in a row that may be skipped because their loss, gradient or rewards are no finite numbers; one more
    ends the run with exit 3."""
    step_deadline_s: float = option(3600.0, low=0)
    """Seconds without a finished step, or a sign of progress elsewhere, past which the phase and the stacks of all
    threads are written to log.txt and standard error; 0: never."""
    stop_past_deadline: bool = False
    """Past that deadline also end the run, with exit 3."""
    trend_steps: int = option(40, low=0)
    """Steps over which the growth of memory, open files and the disk's use is measured; a run that would use one of
    them up before its last step says so once. 0: never."""
