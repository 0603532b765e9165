"""What stages share: components, the held-out tasks, the training of roles, checks of golds and verifiers."""
