"""Background maintenance: rescue of lost jobs, pruning, tenants, clock repairs."""
