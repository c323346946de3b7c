"""What the tests of the HTTP API share: an app with something of everything, and clients with credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import msgspec

from rota import every
from rota.store.contract import Part

if TYPE_CHECKING:
    from starlette.testclient import TestClient

    from rota import App

CREDENTIALS = ("none", "bad", "expired", "read", "operate", "admin")


def declare(app: App) -> None:
    @app.task(name="greet")
    def greet(name: str, times: int = 1) -> str:
        print(f"hello {name}")  # noqa: T201 - into its log
        return name.upper() * times

    @app.task(name="anything")
    def anything(*args: object, **kwargs: object) -> None: ...

    @app.task(name="fail", retries=0, queue="mail")
    def fail() -> None:
        raise ValueError("no luck")

    @app.schedule(every("1h"), id="hourly")
    @app.task(name="tick")
    def tick() -> None:
        """Tick."""

    app.sources.declare("store", ["orders"])(anything)
    app.alerts.add("mail", when="oldest", queue="mail", after="5m")
    app.alerts.channel("pager")(repr)


class Stage:
    """An app, a client, and the secrets of each role."""

    def __init__(self, app: App, client: TestClient) -> None:
        self.app = app
        self.client = client
        self.secrets: dict[str, str | None] = {"none": None, "bad": f"rota_0123456789ab_{'x' * 43}"}
        self.secrets["expired"] = app.tokens.create("late", role="admin", ttl="1s").secret
        for role in ("read", "operate", "admin"):
            self.secrets[role] = app.tokens.create(f"{role}er", role=role).secret
        expire(app, "late")

    def ask(self, method: str, path: str, credential: str = "admin", **options: Any):
        headers = options.pop("headers", {})
        secret = self.secrets[credential]
        if secret is not None:
            headers = {"Authorization": f"Bearer {secret}", **headers}
        return self.client.request(method, path, headers=headers, **options)

    def get(self, path: str, credential: str = "read", **options: Any):
        return self.ask("GET", path, credential, **options)

    def post(self, path: str, credential: str = "operate", **options: Any):
        return self.ask("POST", path, credential, **options)

    def dump(self) -> list[Any]:
        """Everything that the store holds."""
        store = self.app.open()
        return [record for part in get_args(Part) for record in store.dump(part, limit=10_000).items]


def expire(app: App, name: str) -> None:
    """Make a token's time be over."""
    store = app.open()
    for entry in store.list_entries("token").items:
        token = msgspec.json.decode(entry.data)
        if token["name"] == name:
            token["expires_at"] = 1
            edit = {"kind": "token", "name": entry.name, "expect_version": entry.version}
            store.edit_entries([_edit(**edit, data=msgspec.json.encode(token).decode())])


def _edit(**fields: Any):
    from rota.model.entry import EntryEdit  # noqa: PLC0415

    return EntryEdit(**fields)
