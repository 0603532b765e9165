"""A run in the parent's own process, under what its child would have: threads and waiting as in a child, and no import of
packages that it does not use. Entered before anything imports torch, which reads its environment once."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rlvr_exp.config.devices import first_alone
from rlvr_exp.config.load import resolved
from rlvr_exp.config.typed_config import Checked
from rlvr_exp.launch.children import child_environment
from rlvr_exp.launch.ranks import every_device
from rlvr_exp.launch.unused_packages import hide_unused_packages
from rlvr_exp.records.fingerprint import flat


@contextmanager
def inline_environment(checked: Checked) -> Iterator[None]:
    """For a run inside the block; environment and packages are as before behind it."""
    before, modules = dict(os.environ), {*sys.modules}
    os.environ.update(child_environment(checked.config.parallel.threads))
    if not every_device(checked.config):
        os.environ.update(first_alone(os.environ))
    hide_unused_packages(checked.config, flat(resolved(checked)))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        for name in [name for name in sys.modules if sys.modules[name] is None and name not in modules]:
            del sys.modules[name]
