"""The fields of a request that decide which tokens are drawn.

A server applies its own value for each field that a request leaves out. llama.cpp has top_k 40, top_p 0.95 and min_p 0.05.
vLLM and `transformers serve` read theirs from the model's generation_config.json. Therefore each request has all fields, the
neutral values too.
"""

import json
from typing import Any

from rlvr_exp.rollouts.sampling_params import LogitFilters

EXTENDED, TRANSFORMERS, OPENAI, BARE = DIALECTS = ("extended", "transformers", "openai", "bare")
"""Sets of fields, in the order in which the probe tries them. extended: those of vLLM, SGLang and llama.cpp, which ignore
fields that they do not know. transformers: a generation configuration, for `transformers serve`, which refuses other fields.
openai: those of the OpenAI API, which has neither top_k nor min_p. bare: without penalties."""
ORDER = ("penalties", "temperature", "top_k", "top_p", "min_p")
"""The samplers of llama.cpp in the order of LogitFilters. Its own order puts the temperature last."""
LLAMA_CPP = {"samplers": list(ORDER), "mirostat": 0, "dynatemp_range": 0.0}


def sampling_fields(dialect: str, filters: LogitFilters | None, repetition_penalty: float = 1.0) -> dict[str, Any]:
    """
    Args:
        dialect: one of DIALECTS.
        filters: None: greedy.
        repetition_penalty: 1: none. Only the probe has another.
    """
    f = filters or LogitFilters(temperature=0.0)
    fields: dict[str, Any] = {"temperature": f.temperature, "top_p": f.top_p}
    if dialect == BARE:
        return fields
    if dialect == TRANSFORMERS:
        # The server takes the temperature, but neither do_sample nor top_k; its frequency_penalty is a repetition penalty.
        given: dict[str, Any] = {"do_sample": False}
        if filters is not None:
            given = {"do_sample": True, **fields, "top_k": f.top_k, "min_p": f.min_p, "typical_p": 1.0}
        given |= {"repetition_penalty": repetition_penalty, "no_repeat_ngram_size": 0}
        return fields | {"generation_config": json.dumps(given)}
    fields |= {"frequency_penalty": 0.0, "presence_penalty": 0.0}
    if dialect == OPENAI:
        return fields
    penalties = {"repetition_penalty": repetition_penalty, "repeat_penalty": repetition_penalty}
    return fields | {"top_k": f.top_k or -1, "min_p": f.min_p, **penalties, **LLAMA_CPP}
