"""Registers the domain of questions whose answer is a text."""

from rlvr_exp.core.domains import Domain

DOMAIN = Domain(name="answers", schemas="rlvr_exp.domains.answers.options")
