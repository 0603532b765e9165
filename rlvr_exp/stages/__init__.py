"""What a run does: one readable file per stage, with `run(config, context) -> StageResult`. The table is in rlvr_exp.config.stages."""
