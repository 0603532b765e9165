"""Domains: one folder each with everything that belongs to it, registered by its domain.py (rlvr_exp/core/domains.py)."""
