"""Changes made on a caller's word: enqueue, deploy, run now, copy, tenants, collections, and their audit records."""
