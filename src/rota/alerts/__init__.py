"""Checks the alert rules of an app and tells people: webhooks, e-mail, Python functions and heartbeat URLs."""
