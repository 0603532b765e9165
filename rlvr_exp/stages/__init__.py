"""The stages. Each file has a function `run(config, context) -> StageResult`; rlvr_exp.config.schema has the table of
stages."""
