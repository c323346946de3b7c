"""Serves over HTTP what the Python API can do with a running system, to clients with a token. Needs the extra `web`."""

from rota.web.login import Person as Person
