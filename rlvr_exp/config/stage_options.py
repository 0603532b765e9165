"""Options of nodes that exist under one stage: infer, evaluate, verify, validate, rescore, compare, report, serve, view,
index; and of the group `prepare`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from rlvr_exp.config.algorithm import Batched
from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.engine import key_problems
from rlvr_exp.config.model import EMBEDDED
from rlvr_exp.config.options import configures, option
from rlvr_exp.core.domains import domains
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.files import json_of
from rlvr_exp.core.measures import voted_metrics

STDIN = "-"
"""The value of `infer.input` that stands for standard input."""
BEAMS = 4
"""Beams by default."""
ADAPT_RANK, ADAPT_TOKENS = 8, 4096
"""Rank of the adapter of `infer.adapt`, and tokens of a pass of its update, unless one completion with its prompt is longer."""


@dataclass
class Infer(Batched):
    """Options of +stage=infer."""

    input: str = ""
    """Tasks: JSON Lines (gzip allowed), or a .json file with one task or a list. `-`: standard input. Empty: a split of the
    data."""
    split: str = "test"
    """Split of the data, if no input is given. Its tasks come in the order of evaluations."""
    tasks: int = option(0, low=0)
    """First N tasks. 0: all."""
    ids: list[str] = field(default_factory=list)
    """Only the tasks with these ids. Empty: all."""
    output: str = ""
    """File for the answers, one JSON object per line, in the order of the tasks. Empty: answers.jsonl in the run directory
    and standard output."""
    decoding: str = option("greedy", choices=("greedy", "sample", "beam"))
    """greedy: the most probable token. sample: drawn at `temperature` within the filters. beam: the most probable
    completions."""
    beams: int = option(0, low=0)
    """Completions that a beam search keeps. 0: 4."""
    samples: int = option(1, low=1)
    """Best of n: completions for each attempt. The answer is the first that passes, else the one with the best score. With
    an environment of several turns: episodes for each task."""
    vote: int = option(0, low=0)
    """Also let the sampled programs vote on outputs for held-back inputs, weighted by the shown pairs that they solve:
    number of answers per input (ARC allows 2). 0 disables the vote."""
    verify: bool = True
    """Judge the answers with the verifier. false: they are only parsed and checked for syntax."""
    format: bool = False
    """Also write the program formatted for a reader: Python by ruff, ast-grep actions as indented JSON. The verified text
    stays unchanged."""
    adapt: str = option("none", choices=("none", "lora"))
    """lora: a LoRA adapter learns each task from the cases that its prompt shows, between rounds of samples, and is reset for
    the next task. none: the weights do not change."""
    adapt_rounds: int = option(8, low=2)
    """Rounds that share the `samples` of a task with adapt. They end early if a program passes all shown cases."""
    max_attempts: int = option(1, low=1)
    """Attempts per task. After a failed attempt, the next prompt shows the answer and the verifier's feedback."""

    @property
    def width(self) -> int:
        """Completions that a beam search keeps."""
        return self.beams or BEAMS

    @property
    def at_once(self) -> int:
        """Tasks of a batch."""
        return 1 if self.adapt != "none" else max(1, self.batch_size // self.samples)

    @property
    def voted(self) -> tuple[str, ...]:
        """Names of the rates of the vote; none without one."""
        return voted_metrics(self.samples, self.vote)

    def problems(self) -> list[InputProblem]:
        return [
            *self.drawing_problems(),
            *self._of_decoding(),
            *self._of_judging(),
            *self._of_adapting(),
            *_of_output(self.input, self.output),
        ]

    def _of_decoding(self) -> Iterator[InputProblem]:
        filters = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
        given = [name for name, neutral in filters.items() if getattr(self, name) != neutral]
        if given and self.decoding != "sample":
            what = f"draws nothing, so that {', '.join(given)} would have no effect"
            yield InputProblem("decoding", what, self.decoding, "sample", "", "infer.decoding=sample")
        if self.samples > 1 and self.decoding == "greedy":
            what = "greedy completions of one prompt are all the same"
            yield InputProblem("samples", what, str(self.samples), "1", "", "infer.decoding=sample")
        if self.decoding != "beam":
            if self.beams:
                remedy = "infer.decoding=beam, or drop it"
                yield InputProblem("beams", "only a beam search keeps beams", str(self.beams), "0", "", remedy)
            return
        if self.width == 1:
            yield InputProblem("beams", "one beam is greedy decoding", "1", "at least 2", "", "infer.decoding=greedy")
        if self.stop:
            what = "a beam search ends completions by their end token alone"
            yield InputProblem("stop", what, str(self.stop), remedy="infer.decoding=sample or greedy, or drop it")
        if self.samples > self.width:
            what, allowed = f"a search with {self.width} beams finds no more completions", f"1 to {self.width}"
            yield InputProblem("samples", what, str(self.samples), allowed, "", "a larger infer.beams")

    def _of_judging(self) -> Iterator[InputProblem]:
        vote = str(self.vote)
        if self.vote and not self.verify:
            what = "programs vote by what they return, and without a verifier none is run"
            yield InputProblem("vote", what, vote, "0", "", "infer.verify=true")
        if self.vote and self.max_attempts > 1:
            what = "a retry has seen what was expected, which a vote must not"
            yield InputProblem("vote", what, vote, "0", "", "infer.max_attempts=1")
        pointless = {"samples": "nothing would choose among them", "max_attempts": "nothing decides what to retry"}
        for name, why in pointless.items() if not self.verify else ():
            if (given := getattr(self, name)) > 1:
                yield InputProblem(name, f"without a verifier {why}", str(given), "1", "", "infer.verify=true")

    def _of_adapting(self) -> Iterator[InputProblem]:
        if self.adapt == "none":
            if self.adapt_rounds != type(self).adapt_rounds:
                remedy = "infer.adapt=lora, or drop it"
                yield InputProblem("adapt_rounds", "nothing learns", str(self.adapt_rounds), "", "", remedy)
            return
        if self.decoding != "sample":
            what = "an adapter learns from programs that were drawn"
            yield InputProblem("adapt", what, f"lora with decoding={self.decoding}", "", "", "infer.decoding=sample")
        if not self.verify:
            what = "without a verifier no program is run on the shown cases"
            yield InputProblem("adapt", what, "lora with verify=false", "", "", "infer.verify=true")
        if self.max_attempts > 1:
            what = "a retry follows a verdict on hidden cases"
            yield InputProblem(
                "adapt", what, f"lora with max_attempts={self.max_attempts}", "", "", "infer.max_attempts=1"
            )
        if self.samples < self.adapt_rounds:
            what, allowed = "each round draws at least one sample", f"at least {self.adapt_rounds}"
            yield InputProblem("samples", what, str(self.samples), allowed, "", "infer.samples=512")


def _of_output(given: str, output: str) -> Iterator[InputProblem]:
    """Problems of a file that a run writes line by line, from a file of rows."""
    if output.endswith(".gz"):
        yield InputProblem("output", "is written as plain text, so that it can be resumed", output)
    elif output == STDIN:
        remedy = "leave it out: answers go to standard output where it is a pipe"
        yield InputProblem("output", "has to be a file", output, remedy=remedy)
    elif output and given and Path(given).resolve() == Path(output).resolve():
        yield InputProblem("output", "is the input", output, "another file")


OF_THE_DATA = {"input": "", "max_attempts": 1, "vote": 0, "adapt": "none"}
"""Options without a meaning for data in several turns, with their neutral values."""


def of_answers(config: Any) -> Iterator[InputProblem]:
    """Options of +stage=infer that have no meaning next to an environment."""
    infer, target = config.infer, getattr(config.environment, "_target_", SINGLE_TURN)
    if target == SINGLE_TURN or any(target in one.inference for one in domains().values()):
        return  # The schemas of the others have conflicts of their own.
    what = "the environment decides about further turns"
    yield from unread(infer, {"max_attempts": 1, "vote": 0, "adapt": "none"}, what, {})
    yield from of_beams(infer, "episodes of several turns are sampled or greedy")


def unread(infer: Infer, usual: dict[str, Any], what: str, remedies: dict[str, str]) -> Iterator[InputProblem]:
    for name, value in usual.items():
        if (given := getattr(infer, name)) != value:
            remedy = remedies.get(name) or "environment=single_turn"
            yield InputProblem(f"infer.{name}", what, str(given), str(value), "", remedy)


def of_beams(infer: Infer, what: str) -> Iterator[InputProblem]:
    if infer.decoding == "beam":
        yield InputProblem("infer.decoding", what, "beam", "greedy, sample", "", "infer.decoding=greedy")


@dataclass
class Mutated:
    """Options of the checks that change reference answers to make wrong programs."""

    mutants: int = option(4, low=0)
    """Wrong programs made from each reference answer, spread over the kinds of mutation."""


@dataclass
class Prepare:
    """Options of every maker. It trains and measures nothing."""

    reads: ClassVar[tuple[str, ...]] = ()
    """Nodes of the configuration that its maker reads besides its own."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Optional packages that its maker imports."""
    extra: ClassVar[str] = ""
    """Extra of rlvr_exp that installs them."""
    fetches: ClassVar[bool] = False
    """Its maker uses the network."""
    tokenizer_alone: ClassVar[bool] = False
    """Of the `model` node its maker loads the tokenizer, and no weights."""


@dataclass
class Written(Prepare):
    """Options of the makers that write files."""

    output: str = ""
    """File or folder that is written; a folder must be new or empty. Empty: a name in the run directory."""


@dataclass
class Corpus(Written):
    """An embedded corpus, drawn by families from a seed of its own."""

    rows: int = option(0, low=0)
    """Most rows of a split. 0: the sizes of the embedded corpus."""


@dataclass
class FromPath(Prepare):
    """Makers that read existing files."""

    path: str = ""
    """Folder or file that is read."""

    def problems(self) -> list[InputProblem]:
        if self.path:
            return []
        return [InputProblem("path", "not given", "nothing", "an existing folder or file", "", "prepare.path=PATH")]


@configures("rlvr_exp.corpora.rows.make")
@dataclass
class Rows(Written, Mutated):
    """The tasks of the `data` node, in Python, as rows of +stage=verify."""

    reads = ("data", "verifier")
    candidates: list[str] = option(["gold"], choices=("gold", "wrong", "hollow", "mutants"))
    """Kinds of candidates: gold (reference answers), wrong (wrong programs of the data), hollow (stubs that compute
    nothing), mutants (changed reference answers)."""


@configures("rlvr_exp.corpora.models.embed")
@dataclass
class EmbeddedPolicy(Written):
    """The files of an embedded policy: tokenizer and architecture, or a checkpoint's weights."""

    name: str = option("tiny", choices=EMBEDDED)
    """The embedded model that is made."""
    path: str = ""
    """Checkpoint whose weights are written. Empty: the tokenizer and the architecture are written, made from the embedded
    train split."""


@configures("rlvr_exp.corpora.models.merge")
@dataclass
class Merge(FromPath, Written):
    """An adapter, such as RUN/checkpoints/best, merged with its base into a full checkpoint."""

    base: str = ""
    """Location of the base model. Empty: the one recorded in the adapter."""
    dtype: str = option("", choices=("", "auto", "float32", "bfloat16"))
    """Data type of the merged weights. Empty: that of training."""
    stored: bool = False
    """Merge into the base weights as stored. false: into the weights as quantized in training."""


@configures("rlvr_exp.models.quantization.make")
@dataclass
class Gguf(FromPath, Written):
    """A GGUF file of a supported architecture converted to a folder for model.path."""

    dtype: str = option("float32", choices=("float32", "bfloat16"))
    """Type of the written weights. float32 keeps the dequantized values exactly; bfloat16 takes half the space."""


@configures("rlvr_exp.corpora.gguf_export.make")
@dataclass
class GgufExport(FromPath, Written):
    """A checkpoint, such as RUN/checkpoints/best, as a GGUF file for llama.cpp. An adapter is merged in float32 first."""

    packages = ("gguf",)
    extra = "gguf"
    base: str = ""
    """Location of the base model of an adapter. Empty: the one recorded in the adapter."""
    dtype: str = option("float32", choices=("float32", "float16", "bfloat16"))
    """Type of the matrices in the file. float32 is exact; the others take half the space and round."""

    def problems(self) -> list[InputProblem]:
        kind = str((json_of(Path(self.path) / "config.json") or {}).get("model_type", ""))
        if not self.path or not kind or kind in EXPORTED:
            return super().problems()
        allowed = ", ".join(EXPORTED)
        return [InputProblem("path", "unsupported architecture", f"{self.path}: {kind}", allowed)]


EXPORTED = ("llama", "qwen2", "qwen3")
"""Architectures that have an export to GGUF."""


@configures("rlvr_exp.corpora.hub.make")
@dataclass
class Hub(Written):
    """A model or a data set of the Hugging Face hub, downloaded into a folder. No other command downloads."""

    fetches = True
    name: str = ""
    """Its name, OWNER/NAME."""
    kind: str = option("model", choices=("model", "dataset"))
    """model, for model.path. dataset, for data.path."""
    revision: str = "main"
    """Branch, tag or commit. The record of the download has the commit."""
    files: list[str] = field(default_factory=list)
    """Patterns of the files to download, such as [*.json,*.safetensors]. Empty: all."""

    def problems(self) -> list[InputProblem]:
        if HUB_NAME.fullmatch(self.name):
            return []
        what = "not a name of the hub" if self.name else "not given"
        return [InputProblem("name", what, self.name or "nothing", "OWNER/NAME", "", "prepare.name=OWNER/NAME")]


HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
"""OWNER/NAME, which may be a relative path too."""


def hub_record(folder: Path) -> Path:
    """The file about a downloaded folder, next to it."""
    folder = folder.resolve()
    return folder.parent / f"{folder.name}.hub.json"


def hub_command(name: str, kind: str = "model") -> str:
    """The command that downloads a model or a data set, and the word that uses it."""
    folder = f"downloads/{name.rpartition('/')[2]}"
    of_kind = "" if kind == "model" else f" prepare.kind={kind}"
    command = f"python -m rlvr_exp +stage=prepare prepare=hub prepare.name={name}{of_kind} prepare.output={folder}"
    return f"{command}, then {'model' if kind == 'model' else 'data'}.path={folder}"


@dataclass
class Evaluate:
    """Options of +stage=evaluate."""

    baseline: str = ""
    """Run directory to compare with, paired by task. Empty: no comparison."""


@dataclass
class Compare:
    """Options of +stage=compare."""

    runs: list[str] = field(default_factory=list)
    """Run directories to compare."""

    def problems(self) -> list[InputProblem]:
        if len(self.runs) >= 2:
            return []
        what, allowed, remedy = "nothing to compare", "two or more run directories", "compare.runs=[RUN,RUN]"
        return [InputProblem("runs", what, str(self.runs), allowed, "", remedy)]


@dataclass
class Validate(Mutated):
    """Options of +stage=validate."""

    split: str = ""
    """Split of the data. Empty: all splits."""
    universal: str = option("plain", choices=("none", "plain", "all"))
    """Fixed answers that ignore the task. plain: constant values. all: also objects with false equality and code that
    attacks the verifier."""
    require: float = option(1.0, low=0, high=1)
    """Smallest share of reference answers that must pass. Below it, the run ends with exit code 3."""
    answers: str = ""
    """File of a policy's answers, as +stage=infer writes it. They are judged instead of reference answers and wrong
    programs."""


SAMPLES = "samples"
"""The value of `verify.input` that stands for the rows that come with the package."""


@dataclass
class Verify:
    """Options of +stage=verify."""

    input: str = ""
    """Candidates, one JSON object per line, gzip allowed. samples: the example rows of this verifier."""
    output: str = ""
    """File for the verdicts, one JSON object per line, in the order of the input. Empty: verdicts.jsonl in the run
    directory."""
    max_row_mb: int = option(64, low=1)
    """Longest line of the input in MB. A longer line is no_verdict."""

    def problems(self) -> list[InputProblem]:
        return list(_of_output(self.input, self.output))


LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names of this machine that no other machine reaches."""


@dataclass
class Serve:
    """Options of +stage=serve."""

    host: str = LOOPBACK[0]
    """Address of the server. Addresses that other machines reach need api_key_env."""
    port: int = option(8000, low=0, high=65535)
    """Port of the server. 0: a free port."""
    api_key_env: str = ""
    """Name of the environment variable that holds the key of clients. Empty: no key."""
    split: str = "train"
    """Split of the data that is served."""
    judge_only: bool = False
    """Serve POST /verify alone, without tasks."""
    sessions: int = option(64, low=1)
    """Sessions at the same time, one for each WebSocket. Further ones are refused."""
    timeout_s: float = option(600.0, above=0)
    """Seconds without a message after which a session ends."""
    queue: int = option(1024, low=1)
    """Candidates that may wait for their verdicts. Further ones get status 503."""
    max_body_mb: int = option(16, low=1)
    """Largest body of a request, and largest message of a session, in MB."""

    def problems(self) -> list[InputProblem]:
        found = key_problems(self.api_key_env, "serve")
        if self.host not in LOOPBACK and not self.api_key_env:
            what, remedy = "other machines reach this address, so that clients need a key", "serve.api_key_env=NAME"
            found.append(InputProblem("host", what, self.host, ", ".join(LOOPBACK), "", remedy))
        return found


@dataclass
class Report:
    """Options of +stage=report."""

    run: str = ""
    """Run directory whose report.html is rewritten. No other file in it changes."""
    beside: list[str] = field(default_factory=list)
    """Further run directories, plotted on the same page."""


@dataclass
class Overview:
    """Options of +stage=index, which writes index.html into the folder."""

    path: str = "outputs"
    """Folder of the runs: a run directory, or a folder with runs at any depth."""


@dataclass
class View(Overview):
    """Options of +stage=view, which writes nothing into the folder."""

    port: int = option(0, low=0, high=65535)
    """Port of the page on 127.0.0.1. 0: a free port."""


@dataclass
class Rescore:
    """Options of +stage=rescore."""

    run: str = ""
    """Run directory whose rollouts are judged again, with its data, verifier and sandbox unless options are given here."""
    output: str = ""
    """File for old and new verdicts, one JSON object per line, in the order of the rollouts. Empty: rescored.jsonl in this
    run's directory."""

    def problems(self) -> list[InputProblem]:
        return list(_of_output("", self.output))
