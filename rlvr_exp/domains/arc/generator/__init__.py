"""The embedded ARC corpus: transformation families, how tasks are drawn from them, and the builder of the splits."""
