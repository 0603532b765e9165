"""The sandbox for untrusted code: a pool of small fresh interpreters that fork one killable process per candidate."""
