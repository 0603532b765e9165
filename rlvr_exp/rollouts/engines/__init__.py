"""Engines that sample completions: this project's own sampler, an endpoint, or vLLM, all behind one interface (base.py)."""
