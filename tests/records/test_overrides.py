"""Which band the starts of a run sent its curriculum to, and from which step on."""

import json
from pathlib import Path

from rlvr_exp.records import manifest


def test_the_latest_start_at_or_before_a_step_counts(tmp_path: Path) -> None:
    manifest.begin(tmp_path, "grpo", 0, [], "now")
    manifest.record_override(tmp_path, -1, 0, "now")
    assert "overrides" not in json.loads((tmp_path / manifest.NAME).read_text()), "nothing was ever overridden"
    assert manifest.override_after(tmp_path, 9) == -1
    for band, step in ((2, 4), (-1, 8), (1, 6)):
        manifest.record_override(tmp_path, band, step, "now")
    assert [manifest.override_after(tmp_path, step) for step in (2, 4, 6, 8)] == [-1, 2, 1, 1]
    assert manifest.section(tmp_path, "overrides")[1] == {"band": -1, "after_step": 8, "created": "now"}
