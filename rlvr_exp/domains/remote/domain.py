"""Registers the domain of OpenEnv servers."""

from rlvr_exp.core.domains import Domain

DOMAIN = Domain(name="remote", schemas="rlvr_exp.domains.remote.options")
