"""A stage's process with kill points: `python -m killed_launch` in place of `rlvr_exp.child`."""

import sys

import killing

from rlvr_exp import child

if __name__ == "__main__":
    killing.install()
    sys.exit(child.main(sys.argv[1:]))
