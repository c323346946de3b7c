"""Where jobs and schedules are kept: the contract, the steps that all stores share, and one package per kind."""
