"""The command line with `killed_launch` as its stages' process: `python -m killed_program WORDS`."""

import signal
import sys

from rlvr_exp.launch import execute
from rlvr_exp.main import main

if __name__ == "__main__":
    execute.LAUNCH = "killed_launch"
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ignored where the tests run in the background.
    sys.exit(main(sys.argv[1:]))
