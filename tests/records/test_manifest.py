"""Which band the starts of a run sent its curriculum to, and from which step on."""

import json
from pathlib import Path

from rlvr_exp.records import manifest


def test_each_start_that_names_a_band_or_follows_one_is_recorded(tmp_path: Path) -> None:
    manifest.begin(tmp_path, "grpo", 0, [], "now")
    manifest.record_override(tmp_path, -1, 0, "now")
    assert "overrides" not in json.loads((tmp_path / manifest.NAME).read_text()), "nothing was ever overridden"
    for band, step in ((2, 4), (-1, 8), (1, 6)):
        manifest.record_override(tmp_path, band, step, "now")
    assert manifest.section(tmp_path, "overrides")[1] == {"band": -1, "after_step": 8, "created": "now"}
