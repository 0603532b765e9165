"""The parent of a run and the processes that it starts. No torch: the parent never imports it."""
