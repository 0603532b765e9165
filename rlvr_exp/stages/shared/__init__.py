"""Code that several stages share: components, held-out tasks, training, and checks of data and verifiers."""
