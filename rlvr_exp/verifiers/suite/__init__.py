"""The verifier `pytest`: the tests a suite promises (`shape`), the verdict on a run (`judge`), suites as input
(`sanitise`). The harness in the sandbox is rlvr_exp/sandbox/harnesses/pytest."""
