"""Names of the trainer's own options: those of the installed release, and rejected with our key where we set them."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import rlvr_exp
from rlvr_exp.config.algorithm import Scheduler
from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.names import EVERYWHERE, FILES, OURS, framework_key, trl_fields, trl_problems
from rlvr_exp.config.options import SCHEMAS, field_types
from rlvr_exp.config.schema import Config


@pytest.mark.slow
def test_the_fields_read_are_what_the_constructors_take() -> None:
    import trl

    for cls in FILES:
        assert {field.name for field in fields(getattr(trl, cls)) if field.init} == set(trl_fields(cls))


@pytest.mark.heavy
def test_reading_the_fields_loads_neither_library() -> None:
    code = "import sys; from rlvr_exp.config.names import trl_problems; assert trl_problems('SFTConfig', {'x': 1})\n"
    code += "sys.exit(bool({'trl', 'transformers', 'torch'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    "name", ["per_device_train_batch_size", "num_generations", "output_dir", "seed", "bf16", "save_steps"]
)
def test_what_the_framework_sets_is_refused_with_our_key(name: str) -> None:
    (problem,) = compose_lenient(["+stage=grpo", f"algorithm.trl.{name}=1"]).problems
    assert problem.where == f"algorithm.trl.{name}" and problem.remedy.startswith("set ")


@pytest.mark.parametrize("plus", ["", "+", "++"])
def test_a_free_name_passes_through(plus: str) -> None:
    algorithm = compose(["+stage=grpo", f"{plus}algorithm.trl.torch_compile=true"]).config.algorithm
    assert algorithm.trl == {"torch_compile": True}


def test_wrong_types_are_told_without_the_library() -> None:
    assert [problem.where for problem in trl_problems("SFTConfig", {"torch_compile": "yes", "tf32": True})] == [
        "trl.torch_compile"
    ]


def test_every_key_that_a_refusal_names_exists() -> None:
    known = set(field_types(Config)) | {"reward.terms.NAME.weight"}
    for target, schema in SCHEMAS.items():
        rooms = {".optimizers.": "scheduler" if issubclass(schema, Scheduler) else "optimizer"}
        rooms |= {".algorithms.": "algorithm", ".WandB": "tracking"}
        group = next((group for part, group in rooms.items() if part in target), "?")
        known |= {f"{group}.{name}" for name in field_types(schema)}
    for node, schema in field_types(Config).items():
        known |= {f"{node}.{name}" for name in (field_types(schema) if hasattr(schema, "__dataclass_fields__") else ())}
    named = {key for table in (EVERYWHERE, *OURS.values()) for key in table.values() if not key.startswith("nothing")}
    assert {key.split(";")[0].split("=")[0] for key in named} <= known


@pytest.mark.parametrize("cls", FILES)
def test_every_pattern_names_a_field(cls: str) -> None:
    from fnmatch import fnmatchcase

    unused = [pattern for pattern in OURS[cls] if not any(fnmatchcase(name, pattern) for name in trl_fields(cls))]
    assert unused == []


@pytest.mark.parametrize("cls", FILES)
def test_what_the_framework_does_not_set_is_free(cls: str) -> None:
    assert framework_key(cls, "torch_compile") is None and framework_key(cls, "gradient_checkpointing")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("optimizer.learning_rate", "optimizer.lr"),
        ("learning_rate", "optimizer.lr"),
        ("algorithm.num_generations", "algorithm.group_size"),
        ("algorithm.beta", "algorithm.kl_coef"),
        ("algorithm.epsilon", "algorithm.clip_low"),
        ("algorithm.gradient_accumulation_steps", "algorithm.max_tokens_per_device"),
        ("data.dataset_name", "data.path"),
        ("algorithm.kl_coeff", "algorithm.kl_coef"),
        ("evaluation.eval_batch_size", "evaluation.batch_size"),
    ],
)
def test_other_trainers_names_are_translated(typed: str, meant: str) -> None:
    (problem,) = compose_lenient(["+stage=grpo", f"{typed}=1"]).problems
    assert problem.suggestion == meant


def test_the_page_for_users_of_trl_translates_as_the_messages_do() -> None:
    page = (Path(rlvr_exp.__file__).parent / "docs" / "trl.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `([\w.]+)`", page, re.MULTILINE)
    assert len(rows) > 20
    assert [row for row in rows if (framework_key("GRPOConfig", row[0]) or "").partition(";")[0] != row[1]] == []
