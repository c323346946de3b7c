"""Reads and explains: facts, the answers of `why`, health and lists, for the CLI, HTTP, metrics and pages."""
