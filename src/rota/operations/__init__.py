"""Makes changes that callers request: enqueue, deploy, run now, copy, tenants, collections, and their audit records."""
