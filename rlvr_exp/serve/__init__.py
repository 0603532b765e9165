"""The server of +stage=serve: tasks as an OpenEnv environment, and the judge alone. No torch."""
