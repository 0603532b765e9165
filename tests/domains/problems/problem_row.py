"""A row of +stage=infer for a problem, as a file has it."""


def sample(outcome="passed", program="def f(x):\n    return x", pass_rate=1.0):
    return {"program": program, "pass_rate": pass_rate, "outcome": outcome, "bucket": None, "rule": None}


def row(identity="t", outcome="passed", samples=("passed",), **changes):
    return {
        "id": identity, "text": "text", "program": "def f(x):\n    return x", "formatted": None, "fault": "", "outcome": outcome,
        "bucket": "wrong_answer" if outcome == "failed" else None, "rule": None, "score": 1.0, "passed": 1, "total": 1, "log": "",
        "attempt": 1, "attempts": 1, "sample": 0, "tokens": 9, "logprob": -2.0, "truncated": False, "earlier": [],
        "stages": {"plan": "1. take x\n2. return it", "code": "def f(x):\n    return x"},
        "critiques": {"plan": "wrong: its sign", "code": "ok"},
        "tests": [
            {"text": "f(2) == 2", "set": 0, "valid": True, "catches": [1]},
            {"text": "f(2) == 9", "set": 0, "valid": False, "catches": []},
            {"text": "f(0) == 0", "set": 1, "valid": True, "catches": []},
        ],
        "written": ["f(2) == 2\nf(2) == 9", "f(0) == 0"], "validity": 0.75, "pass_rate": 1.0,
        "samples": [one if isinstance(one, dict) else sample(one) for one in samples], "drawn": {"solver": 20, "tester": 7},
    } | changes  # fmt: skip
