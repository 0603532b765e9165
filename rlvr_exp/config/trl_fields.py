"""The fields of TRL's configuration classes and their types, read from the sources of the installed releases.

Never imports TRL or Transformers. Reading takes about 40 ms, so the caller does it only where such a field is given.
"""

import ast
import importlib.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path

BASES = (("transformers", "training_args.py", "TrainingArguments"), ("trl", "trainer/base_config.py", "_BaseConfig"))
FILES = {"GRPOConfig": "trainer/grpo_config.py", "SFTConfig": "trainer/sft_config.py"}


@cache
def trl_fields(cls: str) -> Mapping[str, str]:
    """Name -> annotation, as its source writes it, of all that the class's constructor takes.

    Raises:
        ModuleNotFoundError: TRL or Transformers is not installed.
        StopIteration: a file of the installed release no longer holds its class.
    """
    found: dict[str, str] = {}
    for package, file, name in (*BASES, ("trl", FILES[cls], cls)):
        module = ast.parse((_folder(package) / file).read_text(encoding="utf-8"))
        body = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name).body
        for node in body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = ast.unparse(node.annotation)
    return found


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed: pip install {package}")
    return Path(spec.submodule_search_locations[0])
