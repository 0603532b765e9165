"""`model.system` reaches every prompt of every domain, in each style of wording, plain and as chat."""

import subprocess
from pathlib import Path

import pytest
from code_samples import write_set
from own_models import own_model, own_tokenizer
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.config.model import Model
from rlvr_exp.domains.arc.options import Prompt
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.domains.dafny.options import DafnyPrompt
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.edits.options import EditPrompt
from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.records.rollout_files import read_evaluation
from rlvr_exp.tasks.base import Domain

SYSTEM = "You are careful. Answer with code alone."


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Policy]:
    """By the form of their prompts."""
    folder = own_model(tmp_path_factory.mktemp("own"), "llama", own_tokenizer([SYSTEM] * 20, 300))
    forms = {"chat": "auto", "plain": "never"}
    return {
        name: load_policy(Model(path=str(folder), system=SYSTEM, chat_template=form), 0) for name, form in forms.items()
    }


def domains(folder: Path) -> dict[str, Domain]:
    found: dict[str, Domain] = {"code": Code(str(write_set(folder, "canitedit")))}
    for style in ("bare", "instruct"):
        found |= {
            f"arc {style}": Arc(prompt=Prompt(style=style), limit=1),
            f"dafny {style}": DafnyDomain(prompt=DafnyPrompt(style=style), limit=1),
            f"edits {style}": Edits(prompt=EditPrompt(style=style), limit=1),
        }
    return found


@pytest.mark.slow
@pytest.mark.parametrize("form", ["chat", "plain"])
def test_every_prompt_of_every_domain_carries_it(policies: dict[str, Policy], form: str, tmp_path: Path) -> None:
    policy, found = policies[form], domains(tmp_path)
    opening = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n" if form == "chat" else f"{SYSTEM}\n\n"
    assert policy.chat == (form == "chat") and len(found) == 7
    for name, domain in found.items():
        prompt = domain.task_prompt(domain.splits()["test"][0])
        shown = policy.tokenizer.decode(policy.encode_prompt(prompt))
        assert shown.startswith(opening + prompt.rstrip()), name


@pytest.mark.slow
def test_the_embedded_policy_answers_otherwise_after_it(tmp_path: Path) -> None:
    """Plain prompts, from the command line to the sampler; the rows keep the task's own prompt."""
    words = [*PROGRAM, "+stage=evaluate", "+experiment=quick", "evaluation.tasks=4", "evaluation.samples=1"]
    found = {}
    for name, more in {"with": [f"model.system={SYSTEM}"], "without": []}.items():
        done = subprocess.run(
            [*words, *more, f"run.dir={name}"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found[name] = read_evaluation(tmp_path / name, "after")
    assert [one.prompt for one in found["with"]] == [one.prompt for one in found["without"]]
    greedy = {name: [one.completion.text for one in rows if one.mode == "greedy"] for name, rows in found.items()}
    assert greedy["with"] != greedy["without"]
