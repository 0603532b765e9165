"""Which task comes next: one file per curriculum."""
