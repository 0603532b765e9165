"""Encoded text is decoded unchanged."""

import ast
import keyword
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_models import own_model, own_tokenizer
from thinning import tries

import rlvr_exp
from rlvr_exp.config.model import Model
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.models.policy import Policy, load_policy

DEV = Path(rlvr_exp.__file__).parent / "assets" / "arc" / "dev.jsonl.xz"
GOLDS = [task.gold for task in Arc(path=str(DEV)).splits()["dev"]]
NAMES = st.text("abcdefghijklmnopqrstuvwxyz_é", min_size=1, max_size=8).filter(
    lambda name: name.isidentifier() and not keyword.iskeyword(name)
)
VALUES = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(), st.booleans(), st.none())
LINES = st.builds(lambda name, value: f"{name} = {value!r}", NAMES, VALUES)
BODIES = st.lists(LINES, min_size=1, max_size=5)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A function of assignments, indented by tabs or blanks, with comments and blank lines."""
    indent = draw(st.sampled_from(["    ", "\t", "  "]))
    comment = draw(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=20))
    body = "\n".join(indent + line for line in draw(BODIES))
    return f"def {draw(NAMES)}(x):  # {comment}\n{body}\n\n{indent}return x\n"


EMBEDDED = sorted(path.parent for path in (Path(rlvr_exp.__file__).parent / "assets/models").glob("*/tokenizer.json"))
OWN = "own"
"""A tokenizer such as a user's own model has: byte-level BPE learnt from other texts, with a chat template."""


@pytest.fixture(scope="module", params=[*EMBEDDED, OWN], ids=lambda which: getattr(which, "name", which))
def policy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    path = request.param
    if path == OWN:
        path = own_model(tmp_path_factory.mktemp(OWN), "llama", own_tokenizer(GOLDS[:20]))
    return load_policy(Model(path=str(path)), seed=0)


def special(policy: Policy, text: str) -> bool:
    """Names of special tokens stand for those tokens and not for their letters, in any text."""
    return any(token in text for token in policy.tokenizer.all_special_tokens)


@pytest.mark.property(6)
@settings(max_examples=tries(150), deadline=None)
@given(text=st.one_of(programs(), st.sampled_from(GOLDS), st.text(max_size=60)))
def test_texts_come_back_from_their_tokens(policy: Policy, text: str) -> None:
    if special(policy, text):
        return
    assert policy.tokenizer.decode(policy.tokenizer(text).input_ids) == text
    ids = policy.encode_completion(text)
    assert policy.decode(ids) == text and ids[-1] in policy.eos_ids


@settings(max_examples=tries(20), deadline=None)
@given(programs())
def test_what_is_drawn_is_python(text: str) -> None:
    assert ast.parse(text)


@settings(max_examples=tries(100), deadline=None)
@given(text=st.one_of(programs(), st.text(max_size=60)), near=st.integers(-2, 2))
def test_a_prompt_fits_exactly_where_its_tokens_do(policy: Policy, text: str, near: int) -> None:
    tokens = len(policy.encode_prompt(text))
    assert policy.prompt_fits(text, tokens + near) == (near >= 0)
    of_bytes = len(text.encode(errors="surrogatepass")) + 3
    assert policy.prompt_fits(text, of_bytes + near) == (tokens <= of_bytes + near)
