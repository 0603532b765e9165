"""Writes rlvr_exp/config/trl_fields.py from the installed TRL, so that names can be checked without loading it.

python -m rlvr_exp.algorithms.trl_names      after TRL's pin has changed
"""

import dataclasses
from pathlib import Path

import trl

import rlvr_exp.config
from rlvr_exp.core.files import write_text

TARGET = Path(rlvr_exp.config.__file__).with_name("trl_fields.py")
HEAD = '''"""The fields of TRL's configuration classes and their types. Written by rlvr_exp.algorithms.trl_names."""

TRL_VERSION = "{version}"
'''


def render() -> str:
    """The text of trl_fields.py for the installed release."""
    parts = [HEAD.format(version=trl.__version__)]
    for cls in (trl.GRPOConfig, trl.SFTConfig):
        rows = sorted((field.name, _type_text(field.type)) for field in dataclasses.fields(cls) if field.init)
        body = "".join(f'    "{name}": "{text}",\n' for name, text in rows)
        parts.append(f"{cls.__name__.upper()} = {{\n{body}}}\n")
    return "\n".join(parts)


def _type_text(annotation: object) -> str:
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return " ".join(text.replace("typing.", "").replace('"', "'").split())


if __name__ == "__main__":
    write_text(TARGET, render())
