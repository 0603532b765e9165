"""Typed schemas of every option and the check of a command line against them. Imports nothing heavy."""

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build, load, to_yaml
from rlvr_exp.config.schema import Config
from rlvr_exp.config.typed_config import Checked

__all__ = ["Checked", "Config", "build", "compose", "load", "to_yaml"]
