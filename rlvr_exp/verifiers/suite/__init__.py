"""The verifier `pytest`: the tests a suite promises (`shape`), the verdict on a run (`judge`), suites as input
(`sanitise`). What runs in the sandbox is in rlvr_exp/sandbox/harnesses/pytest."""
