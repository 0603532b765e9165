"""What runs inside the processes of candidates, one folder per verifier that brings a harness of its own."""
