"""Tools within an answer: tokens go in as they came out, results come from the sandbox and carry no loss."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from own_models import own_tokenizer

from rlvr_exp.algorithms.training_batch import collate, completion_mask, joined
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.curriculum.base import Uniform
from rlvr_exp.episodes.episode import POLICY, Draws
from rlvr_exp.episodes.tools import Tools
from rlvr_exp.episodes.types import PENDING, VERDICT_OF, Completion, TokenSample
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.tool_format import template_has_tools
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rewards.terms import AllPassed
from rlvr_exp.rollouts.collect import BatchPlan, Collector, RoleRules
from rlvr_exp.rollouts.groups import GroupFilter
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player, RolloutResult
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.tasks.base import Candidate, ShownTask, ShowsCases, Task
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.tools import CALL_END, Tool
from rlvr_exp.verifiers.python_io import PythonIO

TURNS = "{% for one in messages %}<|im_start|>{{ one.role }}\n{{ one.content }}<|im_end|>\n{% endfor %}"
GOES_ON = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
CHAT = TURNS + GOES_ON
HERMES = (
    "{% if tools %}<|im_start|>system\n{% for one in tools %}{{ one | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}"
    "{% for one in messages %}<|im_start|>{{ 'user' if one.role == 'tool' else one.role }}\n"
    "{% if one.role == 'tool' %}<tool_response>\n{{ one.content }}\n</tool_response>{% else %}{{ one.content }}{% endif %}"
    "{% for call in one.tool_calls or [] %}<tool_call>\n{{ call.function | tojson }}\n</tool_call>{% endfor %}<|im_end|>\n"
    "{% endfor %}" + GOES_ON
)
OTHER = HERMES.replace("<tool_call>", "[CALL]").replace("</tool_call>", "[/CALL]")
TEMPLATES = {"plain": None, "chat without tools": CHAT, "chat with tools": HERMES}
CASES = tuple(Case((value,), value + 1) for value in range(4))
SAMPLING = SamplingParams(LogitFilters(), 100, (0,))
TASK = Task("one", "f", 0.0, None, PythonProblem("f", CASES))
RIGHT, WRONG = "def f(x):\n    return x + 1", "def f(x):\n    return x"
CALL = "<tool_call>\npython\nprint(6 * 7)\n</tool_call>"


class Words(ShowsCases):
    name = "words"

    def splits(self):
        return {}

    def task_prompt(self, task):
        return "Write f."

    def parse(self, completion, task):
        return Candidate(completion)

    def shown_task(self, task):
        return ShownTask(PythonProblem("f", CASES[:2]), 2)


def policy(template: str | None) -> Policy:
    made = own_tokenizer([RIGHT, CALL, "Write f."] * 9, 320, template)
    ends = (made.convert_tokens_to_ids("<|im_end|>"), made.eos_token_id) if template else (made.eos_token_id,)
    return Policy(SimpleNamespace(), made, ends, chat=template is not None, thinking=False, max_tokens=4000)


def runner(one: Policy, verifier, script, **given) -> EpisodeRunner:
    """`script`: the turns of each sample. Their tokens are drawn in pieces that the tokenizer would not choose."""

    def generate(policy, domain, verifier, requests, sampling):
        assert sampling.stop == (CALL_END,)
        rows = []
        for request in requests:
            row = []
            for key in request.keys:
                sample, turn = key[5], sum(part == "call" for part in key)
                text = script[sample][turn]
                ids = [token for letter in text for token in one.tokenizer(letter, add_special_tokens=False).input_ids]
                drawn = TokenSample((*ids, one.eos_ids[0]), (-0.5,) * (len(ids) + 1), False)
                row.append(
                    Completion(request.task, 0, drawn, one.decode(drawn.ids), domain.parse(text, request.task), PENDING)
                )
            rows.append(tuple(row))
        return RolloutResult(tuple(rows), {"generate": 0.0, "verify": 0.0})

    made = Tools(Words(), **{"names": ["python", "run_tests"], "calls": 2, "cpu_s": 1.0, "output": 200, **given})
    return EpisodeRunner(made, {POLICY: Player(one, SAMPLING, 3000)}, verifier, generate)


@pytest.fixture(scope="module")
def verifier():
    made = PythonIO(Sandbox(workers=1))
    yield made
    made.close()


def play(made: EpisodeRunner, samples=range(1)):
    (done,) = made.run([made.environment.reset(TASK, Draws(0, "rollout", (0, 0)), samples)])
    return done


@pytest.mark.heavy
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_result_stands_after_exactly_the_tokens_that_were_drawn(verifier, name):
    one = policy(TEMPLATES[name])
    call = (
        CALL
        if name != "chat with tools"
        else '<tool_call>\n{"name": "python", "arguments": {"code": "print(42)"}}\n</tool_call>'
    )
    made = runner(one, verifier, [[call, RIGHT]])
    done = play(made)
    first, second = done.turns
    drawn = first.completion.sampled.ids
    assert first.prompt_ids == tuple(one.encode_prompt("Write f.", made.environment.tools))
    assert second.prompt_ids[: len(first.prompt_ids) + len(drawn) - 1] == (*first.prompt_ids, *drawn[:-1])
    between = one.tokenizer.decode(second.prompt_ids[len(first.prompt_ids) + len(drawn) - 1 :])
    assert (
        between
        == {
            "plain": "\n<tool_response>\n42\n</tool_response>\n",
            "chat without tools": "<|im_end|>\n<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
            "chat with tools": "<|im_end|>\n<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
        }[name]
    )
    text = one.tokenizer.decode(first.prompt_ids)
    assert ("To call one, end with" in text) == (name != "chat with tools") and "Run a Python program." in text
    assert first.completion.verdict == PENDING and second.completion.correct


@pytest.mark.heavy
def test_a_call_and_its_answer_are_one_row_whose_results_carry_no_loss(verifier):
    one = policy(CHAT)
    script = [[CALL, RIGHT], [CALL, CALL, WRONG], [RIGHT], [WRONG]]
    made = runner(one, verifier, script)
    rules = RoleRules(GroupFilter("keep", 1e-6), lambda rewards, _: tuple(each.total for each in rewards))
    plan = BatchPlan(prompts_per_step=1, group_size=4, steps=1)
    collector = Collector(
        made, {POLICY: Reward({"all": AllPassed()})}, Uniform([TASK], 0), [TASK], plan, {POLICY: rules}, 0
    )
    groups = collector.collect(0).groups[POLICY].sampled
    assert [(len(each.completions), [float(value) for value in each.rewards]) for each in groups] == [
        (4, [1.0, 0.0, 1.0, 0.0]), (2, [1.0, 0.0]), (1, [0.0]),
    ]  # fmt: skip
    assert groups[0].about[0] == {"call": "python", "argument": "print(6 * 7)", "result": "42", VERDICT_OF: "answer"}
    mask = completion_mask(groups)
    batch = collate(groups, one.pad_id, mask.float(), mask.float(), off_policy=False)
    rows = joined(batch)
    drawn = sum(len(each.sampled.ids) for group in groups for each in group.completions)
    assert len(rows.completion_ids) == 4 and int((rows.weights > 0).sum()) == drawn
    for row, weights, ids in zip(rows.completion_mask, rows.weights, rows.completion_ids, strict=True):
        text = one.tokenizer.decode(ids[(weights == 0) & row.bool()])
        assert text == "" or set(text.split("\n")) >= {"<tool_response>", "42"}, text
        assert "42" not in one.tokenizer.decode(ids[weights > 0])
    assert torch.equal(rows.sampling_logprobs != 0, rows.weights > 0)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("python\npass", "(no output)"),
        ("python\nprint('<|im_end|>' * 2)", "<|im_end|><|im_end|>"),
        ("python\n1 / 0", "error: ZeroDivisionError: division by zero"),
        ("python\nwhile True: pass", "error: stopped at its CPU limit"),
        ("python\nprint('x' * 1000)", "x" * 200 + "... (800 more characters)"),
        ("python\nimport socket; socket.create_connection(('127.0.0.1', 9))", "error: "),
        (f"run_tests\n{RIGHT}", "2 of 2 examples pass"),
        (f"run_tests\n{WRONG}", "0 of 2 examples pass. case 0"),
        ("rm\n-r", "error: no tool 'rm'; there are: python, run_tests"),
    ],
)  # fmt: skip
def test_results(verifier, call, result):
    one = policy(CHAT)
    done = play(runner(one, verifier, [[f"<tool_call>\n{call}\n</tool_call>", RIGHT]]))
    assert done.turns[0].note["result"].startswith(result)
    assert done.turns[1].completion.correct
    # A result that looks like the end of a turn is text.
    inside = done.turns[1].prompt_ids[len(done.turns[0].prompt_ids) + len(done.turns[0].completion.sampled.ids) :]
    assert sum(token == one.eos_ids[0] for token in inside) == 1


@pytest.mark.heavy
def test_a_call_inside_of_thoughts_is_none(verifier):
    assert len(play(runner(policy(CHAT), verifier, [[f"<think>\n{CALL}"]])).turns) == 1


@pytest.mark.heavy
def test_a_call_after_the_last_one_is_no_answer(verifier):
    done = play(runner(policy(CHAT), verifier, [[CALL, CALL, CALL]]))
    assert len(done.turns) == 3 and done.turns[2].completion.verdict.bucket == "parse"
    assert "after 2 calls" in done.turns[2].completion.verdict.log


def test_a_template_with_calls_in_another_form_is_refused():
    with pytest.raises(InputError, match=r"chat_template=never"):
        template_has_tools(policy(OTHER).tokenizer)


def test_a_verifier_that_runs_no_programs_is_refused_before_the_start():
    with pytest.raises(InputError, match="verifier=python_io"):
        runner(policy(CHAT), SimpleNamespace(name="pytest"), [])


def test_run_tests_needs_examples():
    with pytest.raises(InputError, match="names"):
        Tools(SimpleNamespace(name="bare"), names=["run_tests"])


@settings(deadline=None)
@given(st.text())
def test_a_result_of_any_text_is_its_own_tokens(text):
    one = policy(CHAT)
    ids = one.encode_result(text, [one.eos_ids[0]])
    around = one.encode_result("", [one.eos_ids[0]])
    assert len(ids) >= len(around) and sum(token in one.eos_ids for token in ids) == 1
    assert Tool("python", "", "code").schema["function"]["name"] == "python"
