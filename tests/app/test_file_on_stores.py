"""What rota.yaml declares, on every store: brought, left alone, changed, retired and brought back."""

from __future__ import annotations

import pytest

from every_store import DURABLE, fresh_place
from rota import App
from rota.app import internals
from rota.deploy.deploy import apply, plan

FILE = """
tenants:
  acme: {tz: Asia/Kolkata}
schedules:
  nightly: {task: greet, cron: "0 3 * * *", args: [ann], tenant: acme}
  hourly: {task: greet, every: 1h, args: [bo]}
"""


@pytest.mark.parametrize("kind", DURABLE)
def test_a_file_is_deployed_again_and_again(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = fresh_place(kind, tmp_path)

    def deploy(text: str, version: str) -> App:
        (tmp_path / "rota.yaml").write_text(text)
        app = App(place.url, name="shop", version=version, namespace=place.namespace)
        app.task(name="mail.greet")(lambda name: name)
        return app

    def states(app: App) -> dict[str, tuple[str, bool]]:
        return {view.id: (view.tz, view.record.origin.is_retired) for view in app.schedules.list().items}

    app = deploy(FILE, "1.0")
    assert [one.kind for _, one in plan(internals(app).deploy, app).schedules] == ["add", "add"]
    assert (app.schedules.sync(), app.schedules.sync(), plan(internals(app).deploy, app)) == (3, 0, ([], []))
    app.close()
    app = deploy(FILE.replace("Kolkata", "Tokyo").partition("  hourly")[0], "1.1")
    assert app.schedules.sync() >= 2
    assert states(app) == {"nightly": ("Asia/Tokyo", False), "hourly": ("UTC", True)}
    app.close()
    app = deploy(FILE, "1.0")
    assert app.schedules.sync() == 0
    app.close()
    app = deploy(FILE, "1.2")
    assert apply(internals(app).deploy, app) >= 2
    assert states(app) == {"nightly": ("Asia/Kolkata", False), "hourly": ("UTC", False)}
    assert {change.verb for change in app.changes().items} >= {"created", "retired", "restored"}
    app.close()
