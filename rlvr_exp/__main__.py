"""`python -m rlvr_exp`."""

import sys

from rlvr_exp.main import main

if __name__ == "__main__":
    sys.exit(main())
