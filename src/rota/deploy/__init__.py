"""Updates a store to the schedules and tenants that the code and rota.yaml of an app declare."""
