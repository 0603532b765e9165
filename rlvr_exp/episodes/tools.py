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
from rlvr_exp.episodes.environment import Environment, Run
from rlvr_exp.episodes.environments import too_long
from rlvr_exp.episodes.episode import Episode, Execute, Judge, Request, Turn, all_turns
from rlvr_exp.episodes.types import PENDING, VERDICT_OF, Completion, RewardBreakdown, TokenCount
from rlvr_exp.tasks.base import Candidate, Domain, ShowsCases, Task
from rlvr_exp.tasks.completion import without_thoughts
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.python_io import PythonProblem, StdinCase
from rlvr_exp.tasks.tools import CALL_END, PYTHON, TOOLS, Call, read_call
from rlvr_exp.verifiers.base import Execution
from rlvr_exp.verifiers.base import Request as VerifierRequest


class Tools(Environment, options.Tools):
    """A policy that may call tools before it answers. Every turn has the credit of the answer that follows from it; turns at the
    same place of an answer share a baseline.

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
        prompt = self._domain.task_prompt(episode.task)
        [turns] = yield [episode.ask(prompt, pending=True)]
        while turns:
            calls = {turn.index: call for turn in turns if (call := self._to_answer(episode, turn))}
            run = [self._execution(turn, calls[turn.index]) for turn in turns if turn.index in calls]
            judged = [self._judge(episode, turn) for turn in turns if self._waits(turn) and turn.index not in calls]
            answers = yield [*filter(None, run), *judged]
            executions = iter(answers)
            asked = []
            for turn, made in zip((turn for turn in turns if turn.index in calls), run, strict=True):
                call = calls[turn.index]
                result = call.fault if made is None else self._result(call, next(executions))
                episode.change(turn.index, note={"call": call.name, "argument": call.argument, "result": result})
                asked.append(episode.ask(result, parent=turn, path=("call",), pending=True, goes_on=True))
            turns = all_turns((yield asked)) if asked else []

    def _waits(self, turn: Turn) -> bool:
        return turn.completion.verdict == PENDING

    def _to_answer(self, episode: Episode, turn: Turn) -> Call | None:
        """The call of a turn that is carried out."""
        if too_long(turn.completion) or turn.completion.truncated or episode.depth(turn.index) >= self.calls:
            return None
        return read_call(without_thoughts(turn.completion.text), self.tools)

    def _judge(self, episode: Episode, turn: Turn) -> Request:
        candidate = turn.completion.candidate
        if read_call(without_thoughts(turn.completion.text), self.tools):
            candidate = Candidate(None, f"calls a tool after {self.calls} calls (environment.calls)")
        return Judge(turn.role, turn.completion.task, candidate, turn.index)

    def _execution(self, turn: Turn, call: Call) -> Execute | None:
        """None for a call that is refused."""
        if call.fault:
            return None
        if call.name == PYTHON.name:
            return Execute(turn.role, VerifierRequest(self._program, Candidate(call.argument)))
        task = turn.completion.task
        return Execute(turn.role, VerifierRequest(self._shown_cases(task), Candidate(call.argument)))

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

    def groups(self, episode: Episode) -> Sequence[Sequence[int]]:
        found: dict[int, list[int]] = {}
        for index, turn in enumerate(episode.turns):
            if not too_long(turn.completion):
                found.setdefault(episode.depth(index), []).append(index)
        return list(found.values())

    def rewarded(self, episode: Episode) -> Sequence[int]:
        return [index for index in range(len(episode.turns)) if not episode.children(index)]

    def credit(self, episode: Episode, rewards: Mapping[int, RewardBreakdown]) -> Mapping[int, RewardBreakdown]:
        credited = dict(rewards)
        for index, paid in rewards.items():
            parent = episode.turns[index].parent
            while parent is not None:
                credited[parent] = RewardBreakdown(paid.total)
                parent = episode.turns[parent].parent
        return credited

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
