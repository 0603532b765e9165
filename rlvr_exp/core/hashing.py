"""Content hashes: one canonical form, so that equal content has an equal name in caches and manifests."""

import dataclasses
import hashlib
import json
from typing import Any


def content_hash(value: Any) -> str:
    """32 hexadecimal digits of a value made of JSON types, tuples, dataclasses and bytes.

    Raises:
        TypeError: the value holds something without a canonical form.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    raise TypeError(f"content_hash: no canonical form for {type(value).__name__}")
