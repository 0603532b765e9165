"""Who answers: loading a policy and its tokenizer, the embedded tiny model."""
