"""Under `instruct` wording the gold completion has the form that the prompt requests, and a completion ends where the body
of its answer ends, in every domain."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from code_samples import write_set

from rlvr_exp.domains.arc.options import Prompt
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.domains.dafny.options import DafnyPrompt
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.completion import block_closes, defines

DOMAINS = ("arc", "dafny writer", "dafny annotator", "dafny permissive", "code")


@pytest.fixture(params=DOMAINS)
def domain(request: pytest.FixtureRequest, tmp_path: Path) -> Domain:
    name = str(request.param)
    if name == "arc":
        return Arc(prompt=Prompt(style="instruct"))
    if name == "code":
        return Code(str(write_set(tmp_path, "human_eval")))
    answer = "permissive" if "permissive" in name else "strict"
    role = name.split()[1].replace("permissive", "annotator")
    return DafnyDomain(role=role, prompt=DafnyPrompt(style="instruct", answer=answer))


def golds(domain: Domain) -> Iterator[tuple[Task, str]]:
    for task in next(iter(domain.splits().values()))[:20]:
        gold = domain.gold_completion(task)
        assert gold is not None
        yield task, gold


@pytest.mark.slow
def test_the_gold_is_a_completion_in_the_form_of_the_prompt(domain: Domain) -> None:
    for task, gold in golds(domain):
        language = "dafny" if isinstance(domain, DafnyDomain) else "python"
        assert gold.startswith(f"```{language}\n") and gold.endswith("\n```")
        assert f"```{language}" in domain.task_prompt(task) or "code block" in domain.task_prompt(task)
        assert domain.parse(gold, task).text == domain.parse(task.gold or "", task).text is not None


@pytest.mark.slow
def test_it_ends_with_the_fence_that_closes_it_and_not_before(domain: Domain) -> None:
    for _, gold in golds(domain):
        places = [end for end in range(len(gold) + 1) if domain.is_complete(gold[:end])]
        assert places == [len(gold)] and domain.stop_text and domain.stop_text in gold[-1]


@pytest.mark.slow
def test_words_before_it_and_other_blocks_end_nothing(domain: Domain) -> None:
    _, gold = next(golds(domain))
    talk = "Install it first:\n```bash\npip install x\n```\nand then\n"
    assert not any(domain.is_complete(talk[:end]) for end in range(len(talk) + 1))
    assert domain.is_complete(talk + gold) and domain.is_complete(f"{gold}\n")
    assert not domain.is_complete(f"<think>\n{gold}") and domain.is_complete(f"<think>\n{gold}\n</think>\n{gold}")


def test_fences_in_a_docstring_end_nothing() -> None:
    program = '```python\ndef f():\n    """\n    ```\n    f() == 1\n    ```\n    """\n    return 1\n```'
    assert [end for end in range(len(program) + 1) if block_closes(program[:end], defines)] == [len(program)]
    assert not block_closes("```python\ndef f(): return 1\ns = '```", defines)


def test_a_bare_answer_keeps_its_form() -> None:
    arc, dafny = Arc(), DafnyDomain()
    task, body = arc.splits()["train"][0], dafny.splits()["train"][0]
    assert arc.gold_completion(task) == task.gold and not arc.is_complete(f"```python\n{task.gold}\n```")
    assert dafny.gold_completion(body) == body.gold and dafny.is_complete(body.gold or "")
