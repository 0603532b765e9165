"""The command line with `killed_launch` as its stages' process: `python -m killed_program WORDS`."""

import sys

from rlvr_exp.main import main
from rlvr_exp.run import execute

if __name__ == "__main__":
    execute.LAUNCH = "killed_launch"
    sys.exit(main(sys.argv[1:]))
