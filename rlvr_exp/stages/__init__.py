"""The stages: one readable file each, with `run(config, context) -> StageResult`. The table is in
rlvr_exp.config.schema."""
