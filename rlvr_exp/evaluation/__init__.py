"""Evaluation: success rates with confidence intervals over tasks, and paired comparisons."""
