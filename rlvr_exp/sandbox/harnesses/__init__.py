"""Code that runs inside the processes of candidates, one folder per verifier with its own harness."""
