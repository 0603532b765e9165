"""Names of licences as SPDX spells them, and which of them forbid training."""

import re

_SPDX = (
    "AGPL-3.0 Apache-2.0 Artistic-2.0 BSD-2-Clause BSD-3-Clause BSL-1.0 CC-BY-4.0 CC0-1.0 EPL-1.0 EPL-2.0 GPL-2.0 GPL-3.0 "
    "ISC LGPL-2.1 LGPL-3.0 MIT MPL-2.0 Unlicense WTFPL Zlib"
)
_CANONICAL = {name.lower(): name for name in _SPDX.split()} | {"unknown": ""}
_FORBIDS = re.compile(r"canitedit|no[ _-]?training|not?[ _-](?:for|as)[ _-]training|evaluation[ _-]only", re.IGNORECASE)


def spdx(licence: str) -> str:
    """A licence's name in SPDX's spelling; empty where the set says that it is unknown, as given where SPDX is not known."""
    return _CANONICAL.get(licence.strip().lower(), licence.strip())


def forbids_training(source: str, licence: str) -> str:
    """The words of a source's or a licence's name that forbid training; empty where none do."""
    found = _FORBIDS.search(f"{source}\n{licence}")
    return found[0] if found else ""
