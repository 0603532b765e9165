"""How a policy learns: algorithms as small classes, trainers on TRL, advantages and loss weights as pure functions."""
