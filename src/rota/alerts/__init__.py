"""Checks the alert rules of an app and notifies people: by webhooks, e-mail, Python functions and heartbeat URLs."""
