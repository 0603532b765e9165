"""The run directory and its files: manifest, metrics, rollouts, summary, tracking. No torch."""
