"""A stage's process that may be told to die: `python -m killed_launch` in the place of `rlvr_exp.stages.launch`."""

import sys

import killing

from rlvr_exp.stages import launch

if __name__ == "__main__":
    killing.install()
    sys.exit(launch.main(sys.argv[1:]))
