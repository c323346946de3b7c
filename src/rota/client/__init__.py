"""Defines the parts of an app, `app.*`: jobs, schedules, tenants, queues, tokens, locks and sources."""
