"""The causes in the order of the pipeline: tasks and prompts, sampling, verdicts, rewards, updates, outcome; then notes.

Several rows may have one name: the same cause, seen in other evidence.
"""

from rlvr_exp.core.domains import domains, load
from rlvr_exp.report.causes.outcome import NOTES, OF_OUTCOME
from rlvr_exp.report.causes.rewards import ODD_PASSES, OF_REWARDS, ONE_ANSWER_PASSES
from rlvr_exp.report.causes.sampling import OF_ANSWERS, OF_DRAWS, OF_TASKS, OTHER_TASKS
from rlvr_exp.report.causes.updates import OF_UPDATES
from rlvr_exp.report.causes.verdicts import CONTRADICTION, NONE_PASS, OF_GOLDS, OF_VERDICTS

_OF_DOMAINS = (cause for one in domains().values() for path in one.causes for cause in load(path))
CAUSES = (
    *OF_TASKS, *OF_GOLDS, *OF_DRAWS, CONTRADICTION, ONE_ANSWER_PASSES, ODD_PASSES, *OF_ANSWERS, *OF_VERDICTS, *OTHER_TASKS,
    NONE_PASS, *OF_REWARDS, *_OF_DOMAINS, *OF_UPDATES, *OF_OUTCOME, *NOTES,
)  # fmt: skip
