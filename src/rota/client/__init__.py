"""What `app.*` hands out: jobs, schedules, tenants, queues, tokens, locks and sources."""
