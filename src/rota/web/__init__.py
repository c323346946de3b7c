"""HTTP: everything that Python can do with a running system, for whoever has a token. Needs the extra `web`."""
