"""All fixed answers to problems of Python functions: plain values, objects that lie, and code that attacks."""

from rlvr_exp.verifiers.universal.building import Build
from rlvr_exp.verifiers.universal.intruders import INTRUDERS
from rlvr_exp.verifiers.universal.liars import LIARS
from rlvr_exp.verifiers.universal.values import VALUES

ANSWERS: tuple[tuple[str, Build], ...] = (*VALUES.items(), *LIARS.items(), *INTRUDERS.items())
PLAIN = frozenset(VALUES)
