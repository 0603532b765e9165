"""Problems of one's own, for tests."""

import json
from pathlib import Path

from rlvr_exp.domains.problems.options import ReasoningStage

ROW = {
    "id": "own/1",
    "text": "Write twice(x). It returns two times x.",
    "entry_point": "twice",
    "solution": "def twice(x):\n    return 2 * x\n",
    "tests": [{"args": [3], "expected": 6}, {"args": [0], "expected": 0}],
    "family": "own",
    "difficulty": 0.25,
}
STAGES = {"plan": ReasoningStage(), "code": ReasoningStage(form="code")}


def written(folder: Path, *rows: dict, name: str = "rows.jsonl") -> str:
    text = json.dumps(list(rows)) if name.endswith(".json") else "".join(json.dumps(row) + "\n" for row in rows)
    (folder / name).write_text(text)
    return str(folder / name)
