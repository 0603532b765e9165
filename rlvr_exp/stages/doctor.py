"""Show what is installed and works on this machine, with a command that repairs what does not.

Each probe uses its tool on a tiny input: it multiplies on the GPU, judges sample programs in the sandbox, proves a method. Probes
that may fail or hang run in processes of their own with a time limit, so this file imports no heavy package. The last probe runs
one step of the main job, +stage=grpo with the default model. The exit code is 0 if that step ran, else 2.
"""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from re import findall

import rlvr_exp
from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.config.schema import Config
from rlvr_exp.config.tree import PACKAGE
from rlvr_exp.core import machine
from rlvr_exp.core.domains import domains, load
from rlvr_exp.core.errors import BAD_INPUT, DONE
from rlvr_exp.core.files import cache_home
from rlvr_exp.core.ray_cluster import INSTALL
from rlvr_exp.launch.children import child_environment
from rlvr_exp.records import manifest
from rlvr_exp.sandbox.isolation.jail import LEVELS, OPEN_AT
from rlvr_exp.tasks.formats.rows import FORMATS

PROBE_S, JOB_S = 180, 900
"""Time limits of a probe and of the step of the main job, in seconds. A busy machine is no fault."""
LEAST_MEMORY, LEAST_DISK = 2 << 30, 1 << 30
"""Bytes that the main job needs: it takes 1.1 GiB of memory."""
MAIN_JOB = (
    *("+stage=grpo", "+experiment=quick", "algorithm.max_steps=1", "cache.enabled=false"),
    *("evaluation.tasks=2", "evaluation.samples=2", "evaluation.greedy=false"),
)
OF_MAIN_JOB = "python_io"
"""The verifier that judges the main job's programs."""
OLDEST_PYTHON = (3, 11)
STRONG = LEVELS[:2]
"""Isolation levels with namespaces."""


class Unusable(Exception):
    """A probe failed.

    Args:
        found: the reason.
        remedy: a command that repairs it; empty: none is needed or known.
        state: `broken`, or `absent` if nothing is installed.
    """

    def __init__(self, found: str, remedy: str = "", state: str = "broken"):
        super().__init__(found)
        self.found, self.remedy, self.state = found, remedy, state


@dataclass(frozen=True)
class Finding:
    """The result of a probe."""

    name: str = ""
    state: str = "works"
    """works, absent or broken; skipped for the main job if something that it needs does not work."""
    version: str = ""
    found: str = ""
    remedy: str = ""
    needed: bool = False
    """Whether the main job needs it."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Probe:
    """A named probe. `run` raises Unusable."""

    name: str
    run: Callable[[], Finding]
    needed: bool = False


def main(_: Config, as_json: bool) -> int:
    """Run all probes, print a table of the findings or one JSON object, and return the exit code."""
    found: list[Finding] = []
    for finding in findings(probes()):
        found.append(finding)
        if not as_json:
            print(line_of(finding), flush=True)
    runs = found[-1].state == "works"
    if as_json:
        print(json.dumps({"runs": runs, "findings": [asdict(one) for one in found]}, indent=1), flush=True)
    else:
        print(f"\nThe main job (+stage=grpo with the default model) {'runs' if runs else 'does not run'} here.")
    return DONE if runs else BAD_INPUT


def line_of(finding: Finding) -> str:
    """The finding in words, its remedy on a line of its own."""
    words = "  ".join(filter(None, (finding.version, finding.found)))
    return f"{finding.name:<10} {finding.state:<8} {words}" + f"\n{'fix: ':>20}{finding.remedy}" * bool(finding.remedy)


def probes() -> list[Probe]:
    """All probes but that of the main job, in the order of the table."""
    judges = sorted(name for name in FORMATS if rows_of(name).is_file() and name != OF_MAIN_JOB)
    return [
        Probe("python", python, needed=True),
        Probe("packages", packages, needed=True),
        Probe("torch", torch, needed=True),
        Probe("gpu", gpu),
        Probe("memory", memory, needed=True),
        Probe("disk", disk, needed=True),
        Probe("sandbox", partial(judge, OF_MAIN_JOB), needed=True),
        *(Probe(name, partial(judge, name)) for name in judges),
        Probe("vllm", vllm),
        Probe("slurm", slurm),
        Probe("ray", ray),
        Probe("container", container),
        Probe("extras", extras),
    ]


def findings(wanted: Sequence[Probe]) -> Iterator[Finding]:
    """Yield the finding of each probe, then that of the main job."""
    failed = []
    for probe in wanted:
        yield (found := finding_of(probe))
        if probe.needed and found.state != "works":
            failed.append(probe.name)
    if failed:
        yield Finding("main job", "skipped", "", f"it needs {', '.join(failed)}", needed=True)
    else:
        yield finding_of(Probe("main job", main_job, needed=True))


def finding_of(probe: Probe) -> Finding:
    """Run a probe."""
    began = time.monotonic()
    try:
        found = probe.run()
    except Unusable as fault:
        found = Finding(state=fault.state, found=fault.found, remedy=fault.remedy)
    return replace(found, name=probe.name, needed=probe.needed, seconds=round(time.monotonic() - began, 1))


def output_of(command: Sequence[str], limit_s: float = PROBE_S, temporary: str = "") -> str:
    """The output of a command. `temporary`: its folder for temporary files, if it needs one of its own.

    Raises:
        Unusable: it does not start, fails, or does not end in time. Then it and its children are killed.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=child_environment(0) | ({"TMPDIR": temporary} if temporary else {}),
            start_new_session=True,
        )
    except OSError as fault:
        raise Unusable(f"{command[0]} does not start: {fault.strerror}") from fault
    try:
        out, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired as slow:
        raise Unusable(f"{Path(command[0]).name} did not end within {limit_s:.0f} s") from slow
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode:
        text = errors.strip() or out.strip() or f"exit code {process.returncode}"
        remedies = findall(r"(?m)^ *remedy: (.*)$", text)
        lines = [line for line in text.splitlines() if "nothing was started" not in line]
        shown = lines[0] if remedies else lines[-1]
        raise Unusable(shown.strip()[:300], remedies[0] if remedies else "")
    return out.strip()


def evaluated(code: str, python: str = sys.executable) -> str:
    """The output of Python code in a process of its own. Raises Unusable."""
    return output_of([python, "-c", code])


@cache
def requirements() -> Mapping[str, Sequence[str]]:
    """The requirements of this package by extra, those of every installation under the empty name."""
    checkout = PACKAGE.parent / "pyproject.toml"
    if checkout.is_file():
        project = tomllib.loads(checkout.read_text(encoding="utf-8"))["project"]
        return {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[str]] = {"": []}
    for line in metadata.requires("rlvr_exp") or ():
        requirement, _, marker = line.partition(";")
        extra = findall(r"""extra == ['"](.*)['"]""", marker)
        found.setdefault(extra[0] if extra else "", []).append(requirement.strip())
    return found


def pinned(package: str) -> str:
    """The requirement of a package, quoted for a shell."""
    every = [line for lines in requirements().values() for line in lines]
    return next((f"'{line}'" for line in every if findall(r"^[\w-]+", line) == [package]), package)


def lacking(wanted: Sequence[str]) -> dict[str, str]:
    """Requirements that are not met, each with what is installed instead."""
    from packaging.requirements import Requirement

    found = {}
    for line in wanted:
        one = Requirement(line)
        try:
            version = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            found[line] = f"{one.name} is not installed"
            continue
        if not one.specifier.contains(version, prereleases=True):
            found[line] = f"{one.name} {version} instead of {one.specifier}"
    return found


def python() -> Finding:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        raise Unusable(f"{version}, older than 3.11", "PYTHON=/path/to/python3.12 bash launchers/local.sh")
    return Finding(version=version, found=f"{sys.executable}; rlvr_exp {rlvr_exp.__version__} in {PACKAGE.parent}")


def packages() -> Finding:
    if find_spec("packaging") is None:
        raise Unusable("packaging is not installed", "pip install packaging")
    if found := lacking(requirements()[""]):
        raise Unusable("; ".join(found.values()), f"pip install {' '.join(map(repr, found))}")
    return Finding(found=f"all {len(requirements()[''])} dependencies have a supported version")


def torch() -> Finding:
    remedy = f"pip install --force-reinstall --no-deps {pinned('torch')}"
    if find_spec("torch") is None:
        raise Unusable("not installed", f"pip install {pinned('torch')}", "absent")
    code = (
        "import torch; made = torch.eye(64, requires_grad=True); (made @ made).sum().backward(); "
        "assert float(made.grad[0, 0]) == 2; print(torch.__version__, torch.get_num_threads())"
    )
    try:
        version, threads = evaluated(code).splitlines()[-1].split()
    except Unusable as fault:
        raise Unusable(fault.found, remedy) from fault
    return Finding(version=version, found=f"differentiates a matrix product; {threads} threads")


def gpu() -> Finding:
    devices = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("kfd")]
    if find_spec("torch") is None:
        raise Unusable("torch is not installed", state="absent")
    code = (
        "import json, torch\nfound = []\n"
        "for index in range(torch.cuda.device_count()):\n"
        "    made = torch.ones(256, 256, device=f'cuda:{index}')\n"
        "    assert float((made @ made)[0, 0]) == 256\n"
        "    about = torch.cuda.get_device_properties(index)\n"
        "    found.append(f'{about.name}, {about.total_memory / 2**30:.0f} GiB')\n"
        "print(json.dumps([torch.version.cuda or torch.version.hip or '', found]))"
    )
    remedy = "nvidia-smi shows the driver; choose a build of torch for it: https://pytorch.org/get-started/locally"
    try:
        version, found = json.loads(evaluated(code).splitlines()[-1])
    except Unusable as fault:
        raise Unusable(fault.found, remedy if devices else "", "broken" if devices else "absent") from fault
    if not found:
        if devices:
            raise Unusable(f"torch sees no device, but {devices[0]} exists", remedy)
        raise Unusable("no GPU; runs use the CPU", state="absent")
    return Finding(version=version, found=f"multiplies on {'; '.join(found)}")


def memory() -> Finding:
    available, total = machine.available(), machine.total()
    found = f"{available / 2**30:.1f} of {total / 2**30:.1f} GiB available"
    if available < LEAST_MEMORY:
        raise Unusable(found, "end other programs, or raise the memory limit of the container")
    return Finding(found=found)


def disk() -> Finding:
    runs = next(
        folder for folder in (Path("outputs").absolute(), *Path("outputs").absolute().parents) if folder.exists()
    )
    cached = next(folder for folder in (cache_home(), *cache_home().parents) if folder.exists())
    found = []
    for use, folder in (("runs", runs), ("cache", cached), ("temporary files", Path(tempfile.gettempdir()))):
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(1 << 20))
                file.flush()
                os.fsync(file.fileno())
        except OSError as fault:
            raise Unusable(f"{use}: {folder} cannot be written: {fault.strerror}", f"chmod u+rwx {folder}") from fault
        if (free := shutil.disk_usage(folder).free) < LEAST_DISK:
            raise Unusable(f"{use}: {free >> 20} MiB free in {folder}", f"du -sh {folder}/* shows what fills it")
        found.append(f"{free / 2**30:.0f} GiB for {use}")
    return Finding(found=f"writes a file; free: {', '.join(found)}")


def rows_of(name: str) -> Path:
    """The sample rows of a verifier."""
    return PACKAGE / "assets" / "rows" / f"{name}.jsonl"


def judge(name: str) -> Finding:
    """Judge the sample rows of a verifier."""
    with tempfile.TemporaryDirectory(prefix="rlvr-doctor-") as folder:
        run = Path(folder) / "run"
        words = ["+stage=verify", f"verifier={name}", "verify.input=samples", "cache.enabled=false", f"run.dir={run}"]
        for need in missing_artifacts(compose_lenient(words).config):
            raise Unusable(need.problem.what, need.command or need.problem.remedy, "absent")
        output_of([sys.executable, "-m", "rlvr_exp", *words])
        verdicts = json_rows(run / "verdicts.jsonl")
        used = manifest.section(run, "verifier")
    wanted = json_rows(rows_of(name))
    wrong = [
        f"{row['id']}: {shown(verdict)} instead of {row['expect']}"
        for row, verdict in zip(wanted, verdicts, strict=True)
        if not shown(verdict).startswith(row["expect"])
    ]
    if wrong:
        raise Unusable(f"wrong verdicts: {'; '.join(wrong)}")
    level = used["isolation"]["level"]
    other = next((load(one.passed_over[name])() for one in domains().values() if name in one.passed_over), "")
    found = "; ".join(filter(None, (f"judges {len(wanted)} samples correctly", f"isolation {level}", other)))
    remedy = "" if level in STRONG else f"{OPEN_AT[level]}; docs/sandbox.md, In containers, has the settings"
    tools = used["tool"]
    return Finding(
        version=tools.get(name) or tools.get(name.replace("_", "-")) or tools["python"], found=found, remedy=remedy
    )


def shown(verdict: Mapping[str, str]) -> str:
    """A verdict in the words of the sample rows."""
    return " ".join(filter(None, (verdict["outcome"], verdict["bucket"] or verdict["rule"])))


def json_rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def vllm() -> Finding:
    """vLLM in this Python, in that of the variable VLLM_PYTHON, or on the PATH."""
    code = "import vllm; from vllm.platforms import current_platform as here; print(vllm.__version__, here.device_type)"
    here = [sys.executable] * (find_spec("vllm") is not None)
    pythons = [*here, *filter(None, [os.environ.get("VLLM_PYTHON")])]
    faults = []
    for one in pythons:
        try:
            version, device = evaluated(code, one).splitlines()[-1].split()
        except Unusable as fault:
            faults.append(f"{one}: {fault.found}")
            continue
        use = "engine=vllm" if one == sys.executable else f"engine=server with {one} -m vllm.entrypoints.cli.main serve"
        return Finding(version=version, found=f"imports for the {device}; {use}")
    if program := shutil.which("vllm"):
        version = output_of([program, "--version"]).splitlines()[-1]
        return Finding(version=version, found=f"{program}; engine=server with vllm serve")
    if faults:
        raise Unusable("; ".join(faults), f"pip install --force-reinstall {pinned('vllm')}")
    raise Unusable(
        "only engine=vllm needs it; VLLM_PYTHON names another Python with it", f"pip install {pinned('vllm')}", "absent"
    )


def slurm() -> Finding:
    program = shutil.which("sinfo")
    if program is None:
        raise Unusable("no sinfo on the PATH; only executor=slurm needs it", state="absent")
    version = output_of([program, "--version"]).removeprefix("slurm ")
    partitions = output_of([program, "--noheader", "--format=%P"], 30).split()
    remedy = "" if find_spec("submitit") else "pip install 'rlvr_exp[submitit]'"
    return Finding(version=version, found=f"answers; partitions: {', '.join(partitions)}", remedy=remedy)


def ray() -> Finding:
    if find_spec("ray") is None:
        raise Unusable("only executor=ray and verifier.pool=ray need it", INSTALL, "absent")
    code = (
        "import ray; ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False); "
        "assert ray.get(ray.remote(lambda: 7).remote()) == 7; print(ray.__version__)"
    )
    try:
        return Finding(version=evaluated(code).splitlines()[-1], found="runs a task on a local cluster")
    except Unusable as fault:
        raise Unusable(fault.found, f"pip install --force-reinstall {pinned('ray')}") from fault


def container() -> Finding:
    """The first of podman and docker whose engine answers. Starts no container, since no image is known to be here."""
    faults = []
    for name, field in (("podman", "{{.Version.Version}}"), ("docker", "{{.ServerVersion}}")):
        if program := shutil.which(name):
            try:
                version = output_of([program, "info", "--format", field], 60).splitlines()[-1]
                images = output_of([program, "images", "--quiet"], 60).split()
                return Finding(version=version, found=f"{program} answers; {len(set(images))} images")
            except Unusable as fault:
                faults.append(f"{program}: {fault.found}")
    if faults:
        raise Unusable("; ".join(faults), "sudo systemctl start docker, or sudo apt-get install podman")
    raise Unusable("only verifier.image needs it", "sudo apt-get install podman", "absent")


def extras() -> Finding:
    if find_spec("packaging") is None:
        raise Unusable("packaging is not installed", "pip install packaging")
    complete: list[str] = []
    missing: list[str] = []
    for name, wanted in requirements().items():
        if name not in ("", "dev", "vllm"):
            (missing if lacking(wanted) else complete).append(name)
    found = f"complete: {', '.join(complete) or 'none'}; incomplete: {', '.join(missing) or 'none'}"
    return Finding(found=found, remedy=f"pip install 'rlvr_exp[{','.join(missing)}]'" if missing else "")


def main_job() -> Finding:
    for need in missing_artifacts(compose_lenient(MAIN_JOB).config):
        raise Unusable(f"{need.problem.where}: {need.problem.what}", need.command or need.problem.remedy)
    with tempfile.TemporaryDirectory(prefix="rlvr-doctor-") as folder:
        run = Path(folder) / "run"
        output_of([sys.executable, "-m", "rlvr_exp", *MAIN_JOB, f"run.dir={run}"], JOB_S, folder)
        steps = json.loads((run / "summary.json").read_text(encoding="utf-8"))["steps"]
    return Finding(found=f"{steps} step of +stage=grpo with the default model")
