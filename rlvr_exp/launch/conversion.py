"""Conversion of weights in installed packages, in a process of its own before a run starts: the parent never imports torch,
and the run's manifest already records the converted files."""

import subprocess
import sys
from typing import TextIO

from rlvr_exp.config.needs import loads_weights
from rlvr_exp.config.packaged import is_converted
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.launch.children import child_environment

MODULE = "rlvr_exp.models.gguf"
"""Named and not imported, since it is above this room."""


def convert_packages(config: Config, out: TextIO) -> None:
    """Convert the weights of every `model.package` that are not in the user's cache yet.

    Raises:
        InputError: the conversion failed.
    """
    if not loads_weights(config):
        return
    models = [config.model, *(of_role(config, role).model for role in config.roles)]
    for package in dict.fromkeys(model.package for model in models if model.package and not model.path):
        if not is_converted(package):
            _convert(package, out)


def _convert(package: str, out: TextIO) -> None:
    environment = {**child_environment(0), "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    words = [sys.executable, "-m", MODULE, package]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", file=out, flush=True)
        _, errors = process.communicate()
    if process.returncode:
        last = errors.strip().rpartition("\n")[2]
        raise InputError(InputProblem("model.package", "the weights cannot be converted", f"{package}: {last}"))
