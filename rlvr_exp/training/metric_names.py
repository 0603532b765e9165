"""The metrics that rows take from TRL, under the project's own names, so that a run's files do not change with TRL."""

NAMES = {
    "loss": "loss",
    "learning_rate": "learning_rate",
    "kl": "kl",
    "clip_ratio/low_mean": "clip/low",
    "clip_ratio/high_mean": "clip/high",
    "num_tokens": "tokens/seen",
    "policy/loss": "policy/loss",
    "value/loss": "value/loss",
    "value/clipped": "value/clipped",
    "value/explained_variance": "value/explained_variance",
    "kl/old": "kl/old",
    "entropy/coef": "entropy/coef",
    "replay/groups": "replay/groups",
    "replay/weight": "replay/weight",
    "mean_token_accuracy": "token_accuracy",
}
"""TRL's name of a metric -> ours. Metrics that are not listed are not logged."""
OF_MACHINE = ("step_time",)
"""TRL's metrics that depend on the machine; no row logs them."""
