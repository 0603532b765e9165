"""A walk through everything that the solution's process can reach finds nothing of the suite and nothing of the grader.

It follows attributes, items, frames, `gc`, modules, closures and descriptors, from everything that Python lists.
"""

import pytest
from suite_arena import judge, make

WALK = """
import gc, sys, threading, types

def neighbours(found):
    yield from gc.get_referents(found)
    if isinstance(found, types.FrameType):
        yield from (found.f_back, found.f_globals, found.f_locals, found.f_code, found.f_builtins)
    if isinstance(found, types.FunctionType):
        yield from (found.__globals__, found.__closure__, found.__code__, found.__dict__)
    if isinstance(found, types.TracebackType):
        yield from (found.tb_frame, found.tb_next)
    if isinstance(found, types.ModuleType):
        yield found.__dict__

def reachable(limit=3_000_000):
    ahead = [sys.modules, sys._current_frames(), sys._getframe(), threading.enumerate(), gc.get_objects(), dir(), sys.argv]
    ahead += [gc.garbage, gc.callbacks, sys.meta_path, sys.path_hooks, object.__subclasses__()]
    seen = set()
    while ahead and len(seen) < limit:
        found = ahead.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        ahead.extend(neighbours(found))
"""
TEXTS = (
    WALK
    + """
def secrets(*prefixes):
    mine = set(prefixes)
    return sorted({found for found in reachable() if type(found) is str and any(
        prefix in found and found not in mine and not found.startswith("def secrets") for prefix in prefixes)
        and "secrets(" not in found and "return [" not in found})
"""
)
SUITE = """
from solution import secrets
EXPECTED = "S3C" + "RET-value"
OTHER = ["S3C" + "RET-other"]
def test_nothing_of_the_suite_is_there():
    assert secrets("S3" + "CRET") == []
def test_a_name_like_no_S3CRET_other(): pass
"""
GRADERS = (
    WALK
    + """
def graders():
    names = ("Rules", "Bridge", "_Run", "Suite", "Session", "Config", "Module", "Function", "Class", "Package")
    found = {type(one).__module__ + "." + type(one).__name__ for one in reachable()
             if type(one).__name__ in names and type(one).__module__.startswith(("_pytest", "rlvr_exp.sandbox.harnesses"))}
    return sorted(found)
"""
)


@pytest.fixture(scope="module")
def verifier():
    with make(cpu_s=60.0, wall_s=200.0, memory_mb=2048) as verifier:
        yield verifier


def test_no_text_of_the_suite(verifier):
    verdict = judge(verifier, TEXTS, SUITE)
    assert verdict.outcome == "passed", verdict


def test_the_walk_finds_what_is_there(verifier):
    """The same walk, with a text that the suite hands over."""
    suite = "from solution import secrets\ndef test_a(): assert secrets('H4ND' + 'ED', ['H4ND' + 'ED-over'][0]) == []"
    kept = TEXTS + "\nkept = 'H4NDED ' + 'here'\n"
    verdict = judge(verifier, kept, suite)
    assert verdict.outcome == "failed" and "H4NDED here" in verdict.log, verdict


def test_no_object_of_the_grader(verifier):
    verdict = judge(verifier, GRADERS, "from solution import graders\ndef test_a(): assert graders() == []")
    assert verdict.outcome == "passed", verdict


def test_no_text_of_another_candidate(verifier):
    assert judge(verifier, "KEPT = 'C4NDIDATE' + '-text'\ndef double(x): return 2 * x").outcome == "passed"
    suite = "from solution import secrets\ndef test_a(): assert secrets('C4NDID' + 'ATE') == []"
    assert judge(verifier, TEXTS, suite).outcome == "passed"
