"""What an evaluation is worth: rates with confidence intervals over tasks, and paired comparisons."""
