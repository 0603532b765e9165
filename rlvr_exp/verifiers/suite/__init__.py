"""The verifier `pytest`: what a suite must come to (`shape`), what a run of it says (`judge`), suites as input
(`sanitise`, `validate`). What runs in the sandbox is in rlvr_exp/sandbox/suite*.py."""
