"""The edits domain: a program and an instruction, answered by ast-grep rules or by the edited text.

Both answers are judged by `verifier=ast_grep`. Splits are those of the rows' files; the other rows are drawn by content, the rows of
one text staying together.

Prompts of style `bare` are for small models trained here: the instruction, the text, and a line that names the answer: `=>` the
edited text, `->` an action. `instruct` says the same in words.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.schema import Config, reads
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.measures import counted
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.edits import options as options
from rlvr_exp.domains.edits.action import DONE, ended_as, is_done, lines_as
from rlvr_exp.domains.edits.options import EDIT_SETS, EditPrompt, FieldSimilarity, StringSimilarity
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.rows import EditRow, load, published
from rlvr_exp.launch.preflight import TRAINED
from rlvr_exp.tasks.base import Candidate, ContinuesEdits, Domain, EditWithTests, HasEditTests, Task
from rlvr_exp.tasks.code_sets import evaluation_only
from rlvr_exp.tasks.completion import answer_text, block_closes, fenced, without_thoughts
from rlvr_exp.tasks.content import program_key, text_key
from rlvr_exp.tasks.shots import Alike, after_examples, chosen_shots, solved_tasks
from rlvr_exp.tasks.sources import embedded_content, embedded_sizes
from rlvr_exp.tasks.splits import placed

EMBEDDED = Path(__file__).parents[2] / "assets" / "edits"
NO_ANSWER = "it has neither a text after it nor tests"
UNREAD = "its gold is another text once it is read back from an answer"
NO_EDIT = "nothing but line ends at its end changes"
MARKS = {"text": "=>", "action": "->"}
"""The line after which a bare answer starts."""
ASKS = {
    "text": "Answer with the full edited text in one code block.",
    "action": (
        "Answer with ast-grep rules that make this edit and no other, as one JSON object or YAML text in one code block, such"
        " as\n"
        '```json\n{"pattern": "print($X)", "rewrite": "log($X)"}\n```\n'
        "A list of such objects is applied one after the other. Where nothing is left to edit, answer `done`."
    ),
    "tags": (
        "Reason inside <think> and </think>. Then write ast-grep rules that make this edit and no other inside <action> and"
        " </action>,\nas one JSON object or YAML text, such as\n"
        '<action>\n{"pattern": "print($X)", "rewrite": "log($X)"}\n</action>\n'
        "and what is known and done after it inside <state_update> and </state_update>. Where nothing is left to edit, the\n"
        "action is `done`."
    ),
}
_ACTION = ("<action>", "</action>")
_NOTE = re.compile(r"<(think|state_update)>\s*(.*?)\s*</\1>", re.DOTALL)


def worded(row: EditRow, instruction: str, target: str, options: EditPrompt) -> str:
    """The prompt of a row by one of its instructions."""
    state = f"<state>\n{row.state.strip(chr(10))}\n</state>\n" if row.state else ""
    before = row.before.rstrip("\n")
    if options.style == "bare":
        return f"{instruction.strip()}\n{state}{before}\n{MARKS[target]}\n"
    ask = ASKS["tags" if target == "action" and options.answer == "tags" else target]
    known = f"{state}\n" if state else ""
    return (
        f"Edit a text in {row.language}.\n\n{instruction.strip()}\n\n{known}{fenced(before, row.language)}\n\n{ask}\n"
    )


def gold_of(row: EditRow, target: str, options: EditPrompt) -> str | None:
    """The gold as a completion; None if the row has none."""
    if target == "text":
        return None if row.after is None else _shown(row.after.rstrip("\n"), row.language, options)
    if not row.action:
        return None
    action = row.action
    if options.form == "yaml" and not is_done(action):
        action = yaml.safe_dump(json.loads(action), sort_keys=False).strip()
    if options.answer == "plain":
        return _shown(action, options.form, options)
    parts = {"think": row.think, "action": action, "state_update": row.state_update}
    return "\n".join(f"<{name}>\n{text.strip(chr(10))}\n</{name}>" for name, text in parts.items() if text)


def answer_in(completion: str, target: str, options: EditPrompt, before: str, language: str = "") -> Candidate:
    """The action or the text in a completion: of tags the last action; in words the last fenced block, else all of it.
    Thoughts are no part of an answer of any style.

    Args:
        language: of the text; empty if it is not known.
    """
    text = without_thoughts(completion)
    tags = ("json", "yaml", "yml") if target == "action" else (language,)
    end = text.rfind(_ACTION[1])
    start = text.rfind(_ACTION[0], 0, max(0, end))
    if target == "action" and start >= 0:
        return _found(answer_text(text[start + len(_ACTION[0]) : end], tags), target)
    if options.style == "bare" or (target == "action" and options.answer == "tags"):
        return _found(text, target, before)
    return _found(answer_text(text, tags), target, before)


def notes_in(answer: str) -> dict[str, str]:
    """The last thoughts and the last update of the state in an answer, by the names of their tags; without those that are empty. Some
    chat templates open the thoughts in the prompt."""
    if "<think>" not in answer.partition("</think>")[0] and "</think>" in answer:
        answer = f"<think>{answer}"
    return {name: text for name, text in _NOTE.findall(answer) if text}


def _notes(row: EditRow, rules: Sequence[Any], place: int) -> dict[str, str]:
    """Return the thought and the update of the state at a step of the row's action. If the row has none, they name the rules
    left, the next pattern, and the number of rules applied after the step."""
    left, applied = len(rules) - place, min(place + 1, len(rules))
    rule = rules[place] if left else {}
    matched = rule.get("pattern") or rule.get("rule", {}).get("pattern", "")
    next_one = (
        f" The next one matches `{matched}`." if isinstance(matched, str) and len(matched.splitlines()) == 1 else ""
    )
    think = f"{counted(left, 'rule')} left.{next_one}" if left else "No rule is left."
    done = f"{applied} of {counted(len(rules), 'rule')} applied."
    return {"think": row.think or think, "state_update": row.state_update or done}


def _shown(text: str, language: str, options: EditPrompt) -> str:
    return text if options.style == "bare" else f"```{language}\n{text}\n```"


def _found(text: str, target: str, before: str = "") -> Candidate:
    """An edited text has the line ends of the text before it, and as many at its end: a completion says nothing of these."""
    if not text.strip():
        return Candidate(None, f"no {target} in the answer")
    if target == "action":
        return Candidate(text.strip("\n"))
    return Candidate(ended_as(lines_as(text, before), before))


@dataclass(frozen=True)
class EditInputs:
    """The row and the instruction of a prompt."""

    row: EditRow
    instruction: str


@dataclass
class Edits(ContinuesEdits, HasEditTests, options.Edits):
    """Edits, from `path` or embedded if it is empty; without a `limit` in the order of the files."""

    name = "edits"
    problem_format = "ast_grep"
    makes_folds = True

    def __post_init__(self) -> None:
        self._source = Path(self.path) if self.path else EMBEDDED
        in_words = self.prompt.style == "instruct"
        self._tagged = in_words and self.target == "action" and self.prompt.answer == "tags"
        self.answers_are_programs = self.target == "text"
        self.stop_text = ">" if self._tagged else "`" if in_words else ""

    def splits(self) -> Mapping[str, Sequence[Task]]:
        return self._tasks

    def sizes(self) -> Mapping[str, int]:
        if not self._as_shipped:
            return super().sizes()
        return embedded_sizes(EMBEDDED, self.limit, each=2 if self.instruction == "both" else 1)

    @property
    def _as_shipped(self) -> bool:
        """Whether the splits are those of the embedded files."""
        return self._source == EMBEDDED and self.as_read

    def fingerprint(self, split: str) -> str:
        content = embedded_content(EMBEDDED, split) if self._as_shipped else None
        if content is None:
            return super().fingerprint(split)
        return content_hash([content, self.instruction, self.target, self.limit, self.seed if self.limit else 0])

    def left_out(self) -> Mapping[str, str]:
        return {row.id: why for row in self._rows if (why := self._why_not(row))}

    def _why_not(self, row: EditRow) -> str:
        """The reason why a row is no task; empty if it is one."""
        if row.after is None and not row.tests:
            return NO_ANSWER
        if row.after == row.before and not row.tests and not is_done(row.action):
            return NO_EDIT
        gold = gold_of(row, self.target, self.prompt) if self.target == "text" else None
        read = gold and answer_in(gold, self.target, self.prompt, row.before, row.language).text
        return UNREAD if gold and read != row.after else ""

    def no_training(self) -> str:
        return "" if self.set == EDIT_SETS[0] else evaluation_only(self._source, self.set)

    def strata(self, task: Task) -> Mapping[str, str]:
        """The style of the instruction, if the rows have two."""
        if self.instruction != "both" or not task.inputs.row.lazy_instruction:
            return {}
        return {"instruction": task.id.rpartition("/")[2]}

    def contents(self, task: Task) -> Sequence[str]:
        """The text before and the text after without blanks, and as programs but for the embedded ones: who learned an edit of
        the same text knows a part of the task."""
        row = task.inputs.row
        kinds = (text_key, program_key) if row.language == "python" and self._source != EMBEDDED else (text_key,)
        return [key(text) for key in kinds for text in (row.before, row.after) if text]

    @property
    def splits_apart(self) -> bool:
        return self._as_shipped

    def task_prompt(self, task: Task) -> str:
        shots = chosen_shots(self._solved, task, self.prompt.shots, self.seed, self._alike) if self.prompt.shots else []
        solved = ((self._worded(shot), self.gold_completion(shot) or "") for shot in shots)
        return after_examples(self._worded(task), solved, self.prompt.style == "instruct")

    def _worded(self, task: Task) -> str:
        return worded(task.inputs.row, task.inputs.instruction, self.target, self.prompt)

    @cached_property
    def _solved(self) -> list[Task]:
        return solved_tasks(self._tasks.get("train", ()))

    @cached_property
    def _alike(self) -> Alike:
        """Edits of one text, or to one text."""
        return Alike(self.contents)

    def parse(self, completion: str, task: Task) -> Candidate:
        row = task.inputs.row
        return answer_in(completion, self.target, self.prompt, row.before, row.language)

    def gold_completion(self, task: Task) -> str | None:
        return gold_of(task.inputs.row, self.target, self.prompt)

    def edit_with_tests(self, task: Task, program: str) -> EditWithTests | None:
        """With the line end between the two that CanItEdit's runner puts there, in place of the program's last."""
        row, after = task.inputs.row, program.removesuffix("\n")
        return EditWithTests(row.before, after, f"{after}\n{row.script}") if row.script else None

    def after_step(self, task: Task, text: str, answer: str) -> Task:
        """The update of the state in the answer becomes the state of the next step; without one the state stays."""
        known = notes_in(answer).get("state_update") if self._tagged else None
        row = replace(task.inputs.row, before=text, state=known or task.inputs.row.state)
        start = task.problem.start or task.problem.before
        problem = replace(task.problem, before=text, teacher="", start=start)
        return replace(task, inputs=replace(task.inputs, row=row), problem=problem)

    def state(self, task: Task) -> str:
        return task.inputs.row.before

    def noted(self, task: Task, answer: str) -> Mapping[str, str]:
        state = task.inputs.row.state
        return {**({"state": state} if state else {}), **notes_in(answer)}

    def described(self, task: Task) -> Mapping[str, Any]:
        row = task.inputs.row
        own = {"source": row.source, "family": row.family, "difficulty": row.difficulty}
        return {"instruction": task.inputs.instruction, "language": row.language, **own}

    def gold_steps(self, task: Task) -> Sequence[str]:
        row = task.inputs.row
        if self.target != "action" or not row.action:
            return ()
        rules = json.loads(row.action)
        rules = rules if isinstance(rules, list) else [rules]
        steps = [*(json.dumps(rule, ensure_ascii=False) for rule in rules), DONE]
        golds = (
            gold_of(replace(row, action=step, **_notes(row, rules, place)), self.target, self.prompt)
            for place, step in enumerate(steps)
        )
        return [gold for gold in golds if gold is not None]

    def is_last(self, completion: str, task: Task) -> bool:
        return self.target == "action" and is_done(self.parse(completion, task).text or "")

    def similarity_pair(self, completion: str, task: Task) -> tuple[str, str] | None:
        gold = self.gold_completion(task)
        return None if gold is None else (" ".join(completion.split()), " ".join(gold.split()))

    def is_complete(self, text: str) -> bool:
        """In words: with the fence that closes a block, or the tag that closes the last part."""
        if self._tagged:
            return without_thoughts(text).rstrip().endswith("</state_update>")
        return bool(self.stop_text) and block_closes(text, lambda block: bool(block.strip()), python=False)

    @cached_property
    def _rows(self) -> list[EditRow]:
        rows = load(self._source) if self.set == EDIT_SETS[0] else published(self._source, self.set)
        return [row if row.after is None else replace(row, after=ended_as(row.after, row.before)) for row in rows]

    @cached_property
    def _tasks(self) -> dict[str, tuple[Task, ...]]:
        usable = [row for row in self._rows if not self._why_not(row)]

        def contents(row: EditRow) -> list[str]:
            return [content_hash(text) for text in (row.before, row.after) if text]

        def key(row: EditRow) -> list[str]:
            return [*contents(row), row.instruction]

        fractions = (self.test_fraction, self.dev_fraction)
        found = self.of_families(placed(usable, contents, key, fractions, self.seed))
        return self.in_folds({name: self._limited(name, rows) for name, rows in found.items()})

    def _limited(self, name: str, rows: Sequence[EditRow]) -> list[Task]:
        tasks = []
        for row in rows:
            lazy = row.lazy_instruction or row.instruction
            if self.instruction == "both" and row.lazy_instruction:
                tasks.append(self._task(row, f"{row.id}/descriptive", row.instruction))
                tasks.append(self._task(row, f"{row.id}/lazy", lazy))
            else:
                tasks.append(self._task(row, row.id, lazy if self.instruction == "lazy" else row.instruction))
        if not self.limit:
            return tasks
        return sorted(tasks, key=lambda task: uniform(self.seed, "limit", name, task.id))[: self.limit]

    def _task(self, row: EditRow, name: str, instruction: str) -> Task:
        proved = self._source == EMBEDDED
        teacher = row.action if self.target == "action" else ""
        texts = (row.language, row.before, row.after or "", row.tests)
        problem = AstGrepProblem(*texts, answer=self.target, proved=proved, teacher=teacher)
        golds = {"text": row.after, "action": row.action or None}
        wrong = tuple(one.text for one in row.wrong if one.is_action == (self.target == "action"))
        inputs = EditInputs(row, instruction)
        return Task(name, row.family, row.difficulty, inputs, problem, golds[self.target], wrong, row.source)


def of_tiny() -> tuple[Edits, str]:
    """The tasks that the embedded model `tiny_edits` imitates, and how its tokenizer splits text."""
    return Edits(instruction="both"), "code"


def teacher_problems(config: Config, domain: Domain) -> Iterator[InputProblem]:
    """A reward by likeness to a teacher's action, and tasks that have none."""
    terms = getattr(config.reward, "terms", {}).values() if reads(config, "reward") else ()
    if not any(isinstance(term, FieldSimilarity | StringSimilarity) for term in terms):
        return
    tasks = [task for name in TRAINED for task in domain.splits().get(name, ())]
    without = [task.id for task in tasks if not getattr(task.problem, "teacher", "")]
    if without:
        what = f"{len(without)} of {len(tasks)} tasks have no action of a teacher"
        remedy = "data=edits with rows that have an `action`"
        yield InputProblem("reward", what, without[0], "", "", remedy)
