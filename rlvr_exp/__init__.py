"""rlvr_exp: train code models against verifiers, with numbers that can be trusted."""

__version__ = "0.2.0"
