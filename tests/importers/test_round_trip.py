"""What `rota export` writes, `rota import rota` reads: on every store, all that defines a schedule is the same."""

from __future__ import annotations

import msgspec
import pytest
import yaml

from every_store import DURABLE, fresh_place
from rota import App, calendar, cron, every
from rota.app import internals
from rota.importers.import_plan import apply_import, origin_of, plan_import
from rota.importers.rota_file import export_items, read_export
from rota.inspector.facts.exported import FORMAT, exported
from rota.inspector.reading import all_schedules
from rota.model.secrets.redaction import DEFAULT, NOTHING_HIDDEN

OWN = ("origin", "created_at", "run_count")  # of the store, not of the schedule


@pytest.fixture
def source():
    app = App("memory://")

    @app.task(name="mail", queue="mail")
    def mail(*args, **kwargs): ...

    app.tenants.put("acme", tz="Asia/Kolkata", queue="acme")
    call = mail.using(retries=7, timeout="90s", meta={"a": 1}).job("ann", cc=["Zoë"], password="hunter2")  # noqa: S106 - to be hidden
    put = app.schedules.put
    put("full", call, cron("30 9 * * mon", tz="Europe/Paris"), overlap="queue", catchup="all", jitter="30s", key="k")
    put("off", mail.job(), every("1h"), enabled=False, max_runs=3, lookahead="1h")
    put("theirs", mail.job(), cron("0 9 * * *"), tenant="acme", description="two\nlines")
    put("monthly", mail.job(), calendar(months=1, at="00:05"), tz="Asia/Tokyo")
    app.schedules.pause("full", reason="on holiday", by="ann")
    yield app
    app.close()


def written(app, path, hidden=NOTHING_HIDDEN):
    found = {one.id: msgspec.to_builtins(exported(one, hidden)) for one in all_schedules(app.open())}
    path.write_text(yaml.safe_dump({"format": FORMAT, "schedules": found}))
    return found


def brought(app, path):
    found = read_export(path)
    known = {one.id: one.created_at for one in app.open().get_schedules([one.name for one in found])}
    items = export_items(found, known, internals(app).registry)
    plan = plan_import(app, origin_of("rota", "file"), items, retires=False)
    apply_import(app, plan, by="ann")
    return {one.item.id: one.state for one in plan.items}


@pytest.mark.parametrize("kind", DURABLE)
def test_what_was_exported_is_imported_again(kind, source, tmp_path):
    place = fresh_place(kind, tmp_path)
    before = written(source, tmp_path / "all.yaml")
    app = App(place.url, namespace=place.namespace)
    app.tenants.put("acme", tz="Asia/Kolkata", queue="acme")
    assert brought(app, tmp_path / "all.yaml") == dict.fromkeys(before, "add")
    assert brought(app, tmp_path / "all.yaml") == dict.fromkeys(before, "unchanged")
    after = written(app, tmp_path / "again.yaml")
    anchor = before["off"]["created_at"].partition(".")[0]
    assert after["off"].pop("trigger") == f"every 1h start={anchor}Z"
    assert before["off"].pop("trigger") == "every 1h"
    for name, said in before.items():
        assert {key: said[key] for key in said if key not in OWN} == {
            key: after[name][key] for key in after[name] if key not in OWN
        }
    app.close()


def test_a_store_takes_its_own_export_as_nothing_new(source, tmp_path):
    before = written(source, tmp_path / "all.yaml")
    assert set(brought(source, tmp_path / "all.yaml").values()) == {"unchanged"}
    assert written(source, tmp_path / "all.yaml") == before


def test_a_hidden_value_is_not_imported_as_one(source, tmp_path):
    written(source, tmp_path / "all.yaml", DEFAULT)
    (full,) = [
        one for one in export_items(read_export(tmp_path / "all.yaml"), {}, internals(source).registry) if not one.spec
    ]
    assert full.id == "full"
    assert "--with-secrets" in full.reason
