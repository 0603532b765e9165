"""Memory and kills of `prepare=edits`, measured: `python tests/domains/edits/ingestion_figures.py DIR MEGABYTES ... [-- OPTION ...]`.

For each size: makes synthetic commits below DIR, ingests them, prints time and the most memory that a process of the run
held. Of the largest it kills a second run twice, continues it, and compares all bytes with the unbroken run's.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from synthetic_commits import write


def start(source: Path, output: Path, run: Path, options: list[str]) -> subprocess.Popen[bytes]:
    words = ["+stage=prepare", "prepare=edits", "prepare.set=commitpackft", f"prepare.path={source}"]
    words += [f"prepare.output={output}", f"run.dir={run}", *options]
    quiet = open(os.devnull, "wb")
    return subprocess.Popen([sys.executable, "-m", "rlvr_exp", *words], stdout=quiet, start_new_session=True)


def unbroken(source: Path, output: Path, options: list[str]) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    process = start(source, output, output.with_name(f"{output.name}_run"), options)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    assert status == 0, status
    cpu = used.ru_utime + used.ru_stime
    print(f"{source.name}: {seconds:.0f} s, {cpu:.0f} s of CPU, {used.ru_maxrss >> 10} MiB", flush=True)
    return seconds


def killed_twice(source: Path, output: Path, options: list[str], seconds: float) -> None:
    draw = random.Random(0)
    for number in range(3):
        process = start(source, output, output.with_name(f"{output.name}_run_{number}"), options)
        if number < 2:
            time.sleep(8 + draw.uniform(0.2, 0.35) * max(seconds - 12, 1))
            os.killpg(process.pid, signal.SIGKILL)
        print(f"{'killed' if number < 2 else 'completed'}: {process.wait()}, {sorted(os.listdir(output))}", flush=True)


def digests(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {
        str(file.relative_to(folder)): hashlib.file_digest(open(file, "rb"), "sha256").hexdigest() for file in files
    }


def main(folder: Path, sizes: list[int], options: list[str]) -> None:
    for size in sizes:
        source, output = folder / f"raw_{size}", folder / f"whole_{size}"
        if not source.exists():
            write(source, size)
        seconds = unbroken(source, output, options)
    killed_twice(source, folder / "killed", options, seconds)
    whole, killed = digests(output), digests(folder / "killed")
    print(f"{len(whole)} files, equal: {whole == killed}")


if __name__ == "__main__":
    words = sys.argv[2:]
    at = words.index("--") if "--" in words else len(words)
    main(Path(sys.argv[1]), [int(word) for word in words[:at]], words[at + 1 :])
