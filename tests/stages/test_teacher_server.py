"""+stage=distill with a teacher on the real `vllm serve`: the embedded policy in float32 on a CPU."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
import torch
from program import ENVIRONMENT, PROGRAM, metrics_of

from rlvr_exp.config.engine import Endpoint
from rlvr_exp.config.model import EMBEDDED_MODELS, Model
from rlvr_exp.core.errors import GUARD
from rlvr_exp.models.policy import load_policy
from rlvr_exp.rollouts.engines.teacher_server import TeacherServer

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
SMALL = ["+experiment=quick", "evaluation.tasks=2", "evaluation.samples=2", "model.max_completion_tokens=16"]
STUDENT = ["model.from_scratch=true", "optimizer.lr=3e-3", "algorithm.max_steps=4", "algorithm.distillation_top_k=20"]
STUDENT += ["algorithm.alpha=0"]


def distilled(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "+stage=distill", *SMALL, *STUDENT, *words]
    return subprocess.run(command, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=900, check=False)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("served") / "log"
    with servers.vllm(EMBEDDED_MODELS / "tiny", log, "--max-model-len", "1152") as address:
        yield address


def test_a_served_teacher_teaches_what_the_same_weights_here_teach(tmp_path: Path, url: str) -> None:
    rows = []
    for name, word in {
        "served": f"roles.teacher.engine.url={url}",
        "here": "roles.teacher.model.embedded=tiny",
    }.items():
        done = distilled(tmp_path, word, f"run.dir={name}")
        assert done.returncode == 0, done.stdout + done.stderr
        rows.append(metrics_of(tmp_path / name))
    served, here = rows
    assert len(served) == len(here) == 4 and served[-1]["distill/divergence"] < served[0]["distill/divergence"]
    names = ("distill/divergence", "distill/gain", "loss", "grad_norm")
    for place, tolerance in ((0, 0.005), (-1, 0.05)):  # Updates enlarge the rounding.
        found, expected = ([one[place][name] for name in names] for one in rows)
        assert found == pytest.approx(expected, rel=tolerance)


def test_a_server_gives_the_log_probabilities_of_its_weights(url: str) -> None:
    policy = load_policy(Model(dtype="float32", chat_template="never"), 0)
    server = TeacherServer(Endpoint(url=url), policy, 20, 1150)
    assert server.begin(["a text"])["url"] == url
    prompts, completions = [list(range(5, 45)), list(range(60, 75))], [[7, 8, 9], [11]]
    ids, logprobs, drawn = server.scored(prompts, completions)
    own = []
    for prompt, completion in zip(prompts, completions, strict=True):
        logits = policy.model(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        own.append(logits.detach().log_softmax(-1))
    expected = torch.cat(own)
    torch.testing.assert_close(logprobs, expected.topk(20).values, atol=2e-4, rtol=0)
    torch.testing.assert_close(logprobs, expected.gather(1, ids), atol=2e-4, rtol=0)
    torch.testing.assert_close(drawn, expected[range(4), [7, 8, 9, 11]], atol=2e-4, rtol=0)


def test_a_server_that_returns_fewer_tokens_is_refused(tmp_path: Path, url: str) -> None:
    done = distilled(tmp_path, f"roles.teacher.engine.url={url}", "algorithm.distillation_top_k=100", "run.dir=run")
    said = done.stdout + done.stderr
    assert done.returncode == 2 and "does not score tokens" in said and "vllm serve --max-logprobs 100" in said


def test_a_server_with_another_tokenizer_is_refused_in_words(tmp_path: Path, url: str) -> None:
    done = distilled(tmp_path, f"roles.teacher.engine.url={url}", "model=tiny_edits", "run.dir=run")
    said = done.stdout + done.stderr
    assert done.returncode == 2 and "the teacher has another tokenizer" in said


def test_a_server_with_a_shorter_context_is_refused(tmp_path: Path, url: str) -> None:
    words = ["model.max_prompt_tokens=1100", "model.max_completion_tokens=60", "run.dir=run"]
    done = distilled(tmp_path, f"roles.teacher.engine.url={url}", *words)
    said = done.stdout + done.stderr
    assert done.returncode == 2 and "--max-model-len 1161" in said


def test_a_server_that_is_gone_is_refused(tmp_path: Path) -> None:
    gone = f"roles.teacher.engine.url=http://127.0.0.1:{servers.free_port()}/v1"
    done = distilled(tmp_path, gone, "roles.teacher.engine.retries=0", "run.dir=run")
    assert done.returncode == 2 and "the server does not answer" in done.stdout + done.stderr


def test_a_server_that_dies_stops_the_run_and_names_the_remedy(tmp_path: Path) -> None:
    words = ["algorithm.max_steps=400", "run.checkpoint.every_steps=1", "roles.teacher.engine.retries=0", "run.dir=run"]
    with servers.vllm(EMBEDDED_MODELS / "tiny", tmp_path / "log", "--max-model-len", "1152") as url:
        command = [*PROGRAM, "+stage=distill", *SMALL, *STUDENT, *words, f"roles.teacher.engine.url={url}"]
        run = subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 300
        while not (tmp_path / "run/checkpoints/latest").exists():
            assert run.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
    said = run.communicate(timeout=120)[0].decode()
    assert run.returncode == GUARD and "does not score" in said and "run the same command again" in said
    other = ["--max-model-len", "1152", "--served-model-name", "other"]
    with servers.vllm(EMBEDDED_MODELS / "tiny", tmp_path / "log", *other) as url:
        done = distilled(tmp_path, *words, f"roles.teacher.engine.url={url}", "run.resume=auto")
    assert done.returncode == 2 and "the run began with another teacher" in done.stdout + done.stderr
