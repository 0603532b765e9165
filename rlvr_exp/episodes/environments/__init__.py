"""The environments: each file is one, named as its option `environment=NAME`."""
