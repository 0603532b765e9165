"""How long the light commands take, against a bare Hydra program: medians of ten interleaved runs, as ratios.

.venv/bin/python tests/main/light_speed.py      at most 2 is wanted
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from test_command_line import LIGHT_LINES, ROOT

HELLO = """
import hydra

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config):
    print(config.x)

main()
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "conf").mkdir()
        (place / "conf" / "config.yaml").write_text("x: 1\n")
        (place / "hello.py").write_text(HELLO)
        lines = {
            "hello": ["hello.py"],
            **{name: ["-m", "rlvr_exp", *words] for name, (words, _) in LIGHT_LINES.items()},
        }
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        taken: dict[str, list[float]] = {name: [] for name in lines}
        for _ in range(10):
            for name, line in lines.items():
                start = time.perf_counter()
                subprocess.run([sys.executable, *line], cwd=place, env=env, capture_output=True, check=False)
                taken[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    for name, median in medians.items():
        print(f"{median / medians['hello']:.2f}  {name}")


if __name__ == "__main__":
    main()
