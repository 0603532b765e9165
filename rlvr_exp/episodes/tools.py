"""Tools within an answer: the policy writes a call, the result stands after its tokens, and it goes on.

The tokens of an answer are never tokenized again: the prompt after a call is the earlier prompt, the tokens that were drawn, and
the tokens of the result (Policy.encode_result). Training joins them in one row, in which only drawn tokens have a loss.

Calls run in the sandbox of the verifier, each in a new process: a program of a call knows nothing of an earlier one. They cost no
verdict and are not cached.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.config import data as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.episodes.environment import Run
from rlvr_exp.episodes.environments import LastAnswerPays, too_long
from rlvr_exp.episodes.episode import Episode, Execute, Judge, Turn, all_turns
from rlvr_exp.episodes.types import PENDING, VERDICT_OF, Completion, TokenCount
from rlvr_exp.tasks.base import Candidate, Domain, ShowsCases, Task
from rlvr_exp.tasks.completion import without_thoughts
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.python_io import PythonProblem, StdinCase
from rlvr_exp.tasks.tools import CALL_END, PYTHON, TOOLS, Call, read_call
from rlvr_exp.verifiers.base import Execution
from rlvr_exp.verifiers.base import Request as VerifierRequest


class Tools(LastAnswerPays, options.Tools):
    """A policy that may call tools before it answers.

    Raises:
        InputError: run_tests with tasks that show no examples.
    """

    name = "tools"
    stops = (CALL_END,)

    def __init__(self, domain: Domain, **given: Any):
        super().__init__(**given)
        if "run_tests" in self.names and not isinstance(domain, ShowsCases):
            what = "run_tests needs tasks that show examples"
            raise InputError(
                InputProblem("environment.names", what, domain.name, "python", "", "environment.names=[python]")
            )
        self._domain, self.tools = domain, tuple(TOOLS[name] for name in self.names)
        limits = Limits(self.cpu_s, 2 * self.cpu_s)
        self._program = PythonProblem("", (StdinCase("", ""),), limits=limits)
        self._shown: dict[str, PythonProblem] = {}

    def domain(self, role: str) -> Domain:
        return self._domain

    def run(self, episode: Episode) -> Run:
        [turns] = yield [episode.ask(self._domain.task_prompt(episode.task), pending=True)]
        while turns:
            calls = [(turn, call) for turn in turns if (call := self._call(turn)) and self._goes_on(episode, turn)]
            calling = {turn.index for turn, _ in calls}
            runs = [self._execution(turn, call) for turn, call in calls if not call.fault]
            ended = [turn for turn in turns if turn.index not in calling and turn.completion.verdict == PENDING]
            executions = iter((yield [*runs, *map(self._judge, ended)]))
            asked = []
            for turn, call in calls:
                result = call.fault or self._result(call, next(executions))
                episode.change(turn.index, note={"call": call.name, "argument": call.argument, "result": result})
                asked.append(episode.ask(result, parent=turn, path=("call",), pending=True, goes_on=True))
            turns = all_turns((yield asked))

    def _call(self, turn: Turn) -> Call | None:
        return read_call(without_thoughts(turn.completion.text), self.tools)

    def _goes_on(self, episode: Episode, turn: Turn) -> bool:
        """Whether a turn that ends with a call gets its result."""
        one = turn.completion
        return not too_long(one) and not one.truncated and episode.depth(turn.index) < self.calls

    def _judge(self, turn: Turn) -> Judge:
        late = Candidate(None, f"calls a tool after {self.calls} calls (environment.calls)")
        candidate = late if self._call(turn) else turn.completion.candidate
        return Judge(turn.role, turn.completion.task, candidate, turn.index)

    def _execution(self, turn: Turn, call: Call) -> Execute:
        problem = self._program if call.name == PYTHON.name else self._shown_cases(turn.completion.task)
        return Execute(turn.role, VerifierRequest(problem, Candidate(call.argument)))

    def _shown_cases(self, task: Task) -> PythonProblem:
        if task.id not in self._shown:
            assert isinstance(self._domain, ShowsCases)
            shown = self._domain.shown_task(task)
            limits = replace(shown.problem.limits, cpu_s=self.cpu_s, wall_s=2 * self.cpu_s)
            self._shown[task.id] = replace(shown.problem, cases=shown.problem.cases[: shown.shown], limits=limits)
        return self._shown[task.id]

    def _result(self, call: Call, done: Execution) -> str:
        """The result of a call in words, cut to `environment.output` characters."""
        verdict = done.verdict
        if call.name == PYTHON.name and done.returned(0):
            text = str(done.outputs[0]).rstrip("\n") or "(no output)"
        elif call.name == PYTHON.name:
            text = f"error: {verdict.log.removeprefix('case 0: ')}" if verdict.log else f"error: {verdict.reason}"
        else:
            passed = f"{verdict.passed} of {verdict.total} examples pass"
            text = passed if verdict.outcome == "passed" else f"{passed}. {verdict.log}"
        if len(text) <= self.output:
            return text
        return f"{text[: self.output]}... ({len(text) - self.output:,} more characters)"

    def shown(self, episode: Episode, index: int) -> Completion:
        """With the verdict on the answer that follows from it."""
        return replace(
            episode.turns[index].completion, verdict=episode.turns[self._end(episode, index)].completion.verdict
        )

    def about(self, episode: Episode, index: int) -> Mapping[str, Any] | None:
        """The call of a turn and its result."""
        note = episode.turns[index].note
        return {**note, VERDICT_OF: "answer"} if note else None

    def result(self, episode: Episode) -> Completion:
        """The answer, with the tokens and seconds of all turns."""
        turns = [turn.completion for turn in episode.turns]
        sampled = TokenCount(sum(one.tokens for one in turns), turns[-1].truncated)
        return replace(turns[-1], sampled=sampled, seconds=sum(one.seconds for one in turns))

    def outcome(self, episode: Episode) -> Mapping[str, Any] | None:
        calls = [turn.note for turn in episode.turns if turn.note]
        return {"calls": calls} if calls else None

    def metrics(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Calls of an answer, the share of answers with any, and the share of calls whose result is an error."""
        ends = [(episode, index) for episode in episodes for index in self.rewarded(episode)]
        if not ends:
            return {}
        depths = [episode.depth(index) for episode, index in ends]
        notes = [turn.note for episode in episodes for turn in episode.turns if turn.note]
        return {
            "tools/calls": sum(depths) / len(ends),
            "tools/used": sum(depth > 0 for depth in depths) / len(ends),
            "tools/errors": sum(note["result"].startswith("error: ") for note in notes) / max(1, len(notes)),
        }

    def _end(self, episode: Episode, index: int) -> int:
        following = episode.children(index)
        return self._end(episode, following[0]) if following else index
