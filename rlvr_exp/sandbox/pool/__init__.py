"""The side of the trusted parent: jobs, their queue, and the workers that run them."""
