"""Solving tasks with a policy: load any checkpoint, sample, verify, retry. Nothing here trains or writes a file.

from rlvr_exp.inference import load

engine = load("outputs/RUN/checkpoints/best")
print(engine.solve({"id": "t", "train": [...], "test": [...]}).program)
"""

from rlvr_exp.inference.engine import Engine, load
from rlvr_exp.inference.solution import Solution

__all__ = ["Engine", "Solution", "load"]
