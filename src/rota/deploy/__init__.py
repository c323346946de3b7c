"""Brings a store to what the code and rota.yaml of an app declare: schedules and tenants."""
