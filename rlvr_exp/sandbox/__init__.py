"""Where untrusted code runs: a pool of small fresh interpreters that fork one killable process per candidate."""
