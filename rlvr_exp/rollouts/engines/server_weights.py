"""The weights of a policy on a vLLM server: written to a folder that the server reads, and loaded by its own endpoints.

lora: each version of the adapter has a name of its own (`/v1/load_lora_adapter`). A request names the version that it wants, and
a server that was restarted refuses it.

full: the server reloads all weights in place (`reload_weights` by `/collective_rpc`) and keeps a version (`/weight_info`), which a
restart clears. An answer counts if the server has the version after it that it had before. An adapter is merged into the files.

A server that dies is waited for, for `engine.timeout_s`, and receives the weights again.
"""

import asyncio
import itertools
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any
from uuid import uuid4
from weakref import finalize

from peft import PeftModel
from safetensors.torch import save_file

from rlvr_exp.config.engine import Server
from rlvr_exp.core.errors import GuardStop, Interrupted
from rlvr_exp.models.parameters import weights_hash
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.client import Client, PromptTooLong, Refused, Reply, Unanswered
from rlvr_exp.rollouts.engines.vllm_weights import named_weights

POLL_S = 0.5
"""Seconds between two looks for a server that does not answer."""
PREFIX = ".weights_"
RETURNS = 5
"""The most returns of a server during one request."""


@dataclass(frozen=True)
class Held:
    """Weights that the server has received."""

    model: str
    """Their name in requests."""
    version: str
    """The server's version of full weights; empty: the name says it."""


class ServerWeights:
    """
    Args:
        options: of the engine.
        client: asks the server.
        directory: of the run, which the server must be able to read.
        interrupted: whether a stop is requested.
    """

    def __init__(self, options: Server, client: Client, directory: Path, interrupted: Callable[[], bool]):
        self._options, self._client, self._interrupted = options, client, interrupted
        self._run = directory.resolve()
        self._numbers = itertools.count(1)
        self._session = uuid4().hex[:8]
        """Part of all names, so that they differ from those of an earlier process."""
        self._root: Path | None = None
        self._files: Path | None = None
        self._written: tuple[Any, ...] = ()
        """Identifies the weights of the files."""
        self._held = Held("", "")
        self.base = ""
        """The served model."""
        self.note: Callable[[str], None] = lambda text: None
        """Tells a person something."""

    async def __aenter__(self) -> "ServerWeights":
        """`load` and `ask` are called inside."""
        self._lock = asyncio.Lock()
        await self._client.__aenter__()
        return self

    async def __aexit__(self, kind: type | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        await self._client.__aexit__(kind, fault, trace)

    def write(self, policy: Policy) -> bool:
        """Write the policy's weights, unless the files have them. Return whether the server must load them."""
        model = policy.model
        adapter = model.active_adapter if isinstance(model, PeftModel) else None
        written = (id(model), adapter, weights_hash(model))
        if written == self._written:
            return False
        if self._root is None:
            for old in self._run.glob(f"{PREFIX}*"):  # Of a killed process.
                shutil.rmtree(old)
            self._root = Path(mkdtemp(prefix=PREFIX, dir=self._run))
            self._root.chmod(0o755)  # The server may be another user's.
            finalize(self, shutil.rmtree, self._root, ignore_errors=True)
        before, self._files = self._files, self._root / f"{self._session}-{next(self._numbers)}"
        self._files.mkdir()
        if self._options.weights == "lora":
            model.save_pretrained(self._files, selected_adapters=[adapter])
        else:
            tensors = {name: value.contiguous() for name, value in named_weights(model)}
            save_file(tensors, self._files / "model.safetensors", metadata={"format": "pt"})
        if before is not None:
            shutil.rmtree(before)
        self._written = written
        return True

    async def load(self) -> None:
        """Let the server load the files. If it does not answer, wait for it.

        Raises:
            GuardStop: it refuses them, or does not come back.
            Interrupted: a stop was requested meanwhile.
        """
        try:
            await self._load()
        except Unanswered as fault:
            await self._return(str(fault))

    async def _load(self) -> None:
        assert self._files is not None
        name = self._files.name
        try:
            if self._options.weights == "lora":
                await self._load_adapter(name)
            else:
                await self._load_all(Held(self.base, f"{name}-{uuid4().hex[:8]}"))
        except (Refused, PromptTooLong) as fault:
            remedy = "see the server's log; its options are in rlvr_exp/docs/rollouts.md"
            raise self.stop(
                f"the server does not load the weights in {self._files}: {fault}. Remedy: {remedy}"
            ) from fault

    async def _load_adapter(self, name: str) -> None:
        assert self._files is not None
        folder = next(self._files.rglob("adapter_config.json")).parent
        body = {"lora_name": name, "lora_path": str(folder), "load_inplace": True}
        await self._client.call("/v1/load_lora_adapter", body)
        before, self._held = self._held, Held(name, "")
        if before.model not in ("", name):
            try:
                await self._client.call("/v1/unload_lora_adapter", {"lora_name": before.model})
            except Refused as fault:
                if fault.status != 404:  # A restarted server has no earlier one.
                    raise

    async def _load_all(self, held: Held) -> None:
        """Each load has a version of its own. It comes first: a restart at any later moment clears it."""
        await self._client.call("/update_weight_version", {"new_version": held.version})
        arguments = {"weights_path": str(self._files)}
        await self._client.call("/collective_rpc", {"method": "reload_weights", "kwargs": arguments})
        await self._client.call("/reset_prefix_cache", {})
        if not await self._still(held):
            raise Unanswered("it was restarted while it loaded the weights")
        self._held = held

    async def ask(self, body: Mapping[str, Any], *label: str | int) -> Reply:
        """The answer of the server with the weights of the files. If it dies, wait for it and ask again.

        Raises:
            GuardStop: it does not come back.
            Interrupted: a stop was requested meanwhile.
            PromptTooLong, Refused.
        """
        last = ""
        for _ in range(RETURNS):
            held = self._held
            try:
                reply = await self._client.ask(False, {"model": held.model, **body}, *label)
                if await self._still(held):
                    return reply
                last = "it was restarted while it answered"
            except Unanswered as fault:
                last = str(fault)
            except Refused as fault:
                if fault.status != 404:
                    raise
                last = f"it was restarted: {fault}"
            async with self._lock:
                if self._held is held:  # Else another request has waited for it.
                    await self._return(last)
        raise self.stop(f"no answer, though it came back {RETURNS} times: {last}")

    async def _still(self, held: Held) -> bool:
        return not held.version or (await self._client.call("/weight_info"))["weight_version"] == held.version

    async def _return(self, reason: str) -> None:
        """Wait until the server answers, and let it load the files."""
        url, limit = self._options.url, self._options.timeout_s
        until = time.monotonic() + limit
        self.note(f"{url} does not answer ({reason}); waiting for it for {limit:g} s")
        while time.monotonic() < until:
            if self._interrupted():
                raise Interrupted(f"stopped while {url} was waited for. {self._checkpoint()}")
            try:
                await self._client.models()
                await self._load()
                self.note(f"{url} answers again and has received the weights")
                return
            except Unanswered:
                await asyncio.sleep(POLL_S)
        raise self.stop(f"the server has not come back within {limit:g} s (engine.timeout_s): {reason}")

    def stop(self, reason: str) -> GuardStop:
        """The end of the run."""
        return GuardStop(f"engine {self._options.url}: {reason}. {self._checkpoint()}")

    def _checkpoint(self) -> str:
        latest = self._run / "checkpoints" / "latest"
        if not latest.exists():
            return "The run has no checkpoint yet"
        return f"The last checkpoint is {latest.resolve()}; run.resume={self._run} goes on from it"
