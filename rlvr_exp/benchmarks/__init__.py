"""How fast the project is, measured on the user's own machine: paired, interleaved, against what people use today."""
