"""Serve tasks as an OpenEnv environment, and the verifier as `POST /verify`, until Ctrl-C. No model, no torch.

A client plays the policy. The server never sends reference answers, hidden cases or expected outputs.
"""

import os
import socket
import time
from contextlib import closing
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import Serve
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.serve.judge import Judge, Refused, VerifyEndpoint
from rlvr_exp.serve.server import application, listen, serve
from rlvr_exp.stages.shared.data_and_verifier import (
    build_domain,
    build_verifier,
    check_verifier_match,
    checked_description,
    system_metrics,
)
from rlvr_exp.stages.verify import format_of
from rlvr_exp.verifiers.base import KeepsOutputs, Verifier

EVERY_S = 30.0
"""Seconds between two reports of the number of verdicts."""


def run(config: Config, context: RunContext) -> StageResult:
    options = config.serve
    assert options is not None  # The stage has its node.
    with build_verifier(config) as verifier:
        judge = Judge(verifier, options.queue)
        endpoint = VerifyEndpoint(judge, format_of(verifier))
        served = None if options.judge_only else _served(config, context, verifier)
        manifest.update(context.directory, verifier=checked_description(verifier, context))
        key = os.environ[options.api_key_env] if options.api_key_env else ""
        judges = [judge] if served is None else [judge, served.judge]
        with closing(_listen(options)) as listening:
            host = f"[{options.host}]" if ":" in options.host else options.host
            for text in (f"http://{host}:{listening.getsockname()[1]}", "Ctrl-C ends the server."):
                context.progress(kind="note", text=text)
            reported = time.monotonic()

            async def beat() -> None:
                nonlocal reported
                context.heartbeat()
                if time.monotonic() - reported >= EVERY_S:
                    reported = time.monotonic()
                    context.progress(kind="wait", name=f"serving: {sum(_outcomes(judges).values())} verdicts")

            if not context.interrupted:  # From here on, the server takes signals.
                serve(application(endpoint, served, options, key), listening, options, beat)
        return StageResult(metrics={**_outcomes(judges), **system_metrics(verifier)})


def _served(config: Config, context: RunContext, verifier: Verifier) -> Any:
    """The tasks of the configuration. Raises InputError."""
    from rlvr_exp.serve.episodes import Play, Served  # Not at the top: the judge alone needs no package openenv.

    options = config.serve
    assert options is not None
    domain = build_domain(config, context)
    splits = domain.splits()
    tasks = splits.get(options.split, ())
    if not tasks:
        raise InputError(InputProblem("serve.split", "no tasks in this split", options.split, ", ".join(splits)))
    check_verifier_match(verifier, tasks)
    environment = build(config.environment, domain=domain)
    if environment.keeps_outputs:
        verifier = KeepsOutputs(verifier, "environment", remember=False)
    served = Served(domain, environment, Judge(verifier, options.queue), options.split, tasks)
    try:
        Play(environment, tasks[0], lambda request: served.verdict(request, None))
    except Refused as fault:
        what, allowed = f"cannot be served: {fault}", "single_turn, retry, edits"
        raise InputError(InputProblem("environment", what, environment.name, allowed)) from fault
    data = {options.split: {"tasks": len(tasks), "fingerprint": domain.fingerprint(options.split)}}
    manifest.update(context.directory, data=data)
    return served


def _listen(options: Serve) -> socket.socket:
    try:
        return listen(options.host, options.port)
    except OSError as fault:
        what, remedy = f"cannot be used: {fault.strerror}", "another port, or serve.port=0 for a free one"
        got = f"{options.host}:{options.port}"
        raise InputError(InputProblem("serve.port", what, got, remedy=remedy)) from fault


def _outcomes(judges: list[Judge]) -> dict[str, int]:
    """Number of verdicts by outcome."""
    found: dict[str, int] = {}
    for judge in judges:
        for outcome, count in judge.outcomes().items():
            found[outcome] = found.get(outcome, 0) + count
    return found
