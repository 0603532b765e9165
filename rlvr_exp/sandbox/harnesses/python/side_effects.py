"""Whether a candidate's code can have side effects in its process: without them nothing is restored between cases.

Decided from the compiled code: no import, no attribute or global written, no name that begins with an underscore, and
of the builtins only those that compute. A wrong "no" would keep state for the next case of the same candidate, which
does not affect the verdict (state_reset explains why); so this decides speed alone. Standard library only.
"""

import builtins
from dis import opmap
from types import CodeType

_WRITES = {
    opmap[name]
    for name in ("IMPORT_NAME", "STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_BUILD_CLASS")
    if name in opmap
}
_COMPUTING = set(
    "abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter float format frozenset"
    " hash hex int isinstance issubclass iter len list map max min next oct ord pow print range repr reversed round set"
    " slice sorted str sum tuple zip".split()
)
_OTHERS = {
    name for name, value in vars(builtins).items() if not (isinstance(value, type) and issubclass(value, BaseException))
} - _COMPUTING


def has_side_effects(code: CodeType) -> bool:
    """Conservative: true where it is unknown."""
    if _WRITES & set(code.co_code[::2]):
        return True
    if any(name.startswith("_") or name in _OTHERS for name in code.co_names):
        return True
    return any(has_side_effects(part) for part in code.co_consts if isinstance(part, CodeType))
