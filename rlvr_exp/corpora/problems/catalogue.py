"""All families of problems, registered by the modules that draft them."""

from rlvr_exp.corpora.problems import lists_change, lists_shape, lists_where, texts, whole_numbers
from rlvr_exp.corpora.problems.family import FAMILIES

__all__ = ["FAMILIES", "lists_change", "lists_shape", "lists_where", "texts", "whole_numbers"]
