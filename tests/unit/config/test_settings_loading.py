"""Which value counts: defaults < rota.yaml < ROTA_* variables < arguments, each with where it was said."""

from __future__ import annotations

import pytest
from tools.settings_page import settings_table

from rota import App
from rota.config.describe import sample
from rota.config.environment import near_misses, read_environment
from rota.config.loader import from_code, resolve
from rota.config.settings import KEYS, LEVELS, PARTS, RetentionPart, Settings, value_at
from rota.errors import BadDuration, BadSettings, UnknownZone
from rota.model.micros import SECOND
from rota.store.contract import Retention

NOTHING = from_code(store=None, namespace=None, tz=None, lease=None, retention=None)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(folder, text: str = "", **variables: str):
    (folder / "rota.yaml").write_text(text)
    return resolve(folder, environment=variables)


def test_defaults_count_where_nothing_is_said(folder):
    found = resolve(folder, environment={})
    assert found.settings == Settings()
    assert found.file is None
    assert {origin.words for origin in found.origins.values()} == {"default"}


def test_a_file_overrules_defaults_a_variable_the_file_and_an_argument_both(folder):
    (folder / "rota.yaml").write_text("tz: Europe/Paris\nlease: 10s\ndrain: 5s\n")
    variables = {"ROTA_LEASE": "20s", "ROTA_DRAIN": "6s"}
    given = from_code(store=None, namespace=None, tz=None, lease="40s", retention=None)
    found = resolve(folder, given, variables)
    assert (found.settings.tz, found.settings.drain, found.settings.lease) == ("Europe/Paris", 6 * SECOND, 40 * SECOND)
    assert [found.origins[path].words for path in ("namespace", "tz", "drain", "lease")] == [
        "default",
        "rota.yaml:1",
        "ROTA_DRAIN",
        "code",
    ]
    assert [(value.path, value.origin.words) for value in found.overruled] == [
        ("lease", "rota.yaml:2"),
        ("lease", "ROTA_LEASE"),
    ]


def test_an_argument_that_says_the_same_overrules_nobody(folder):
    given = from_code(store="sqlite:///a.db", namespace=None, tz=None, lease=None, retention=None)
    assert resolve(folder, given, {"ROTA_STORE": "sqlite:///a.db"}).overruled == ()


def test_keys_of_one_section_may_come_from_several_places(folder):
    worker = said(folder, "worker: {concurrency: 4, queues: [mail]}", ROTA_WORKER_CONCURRENCY="8").settings.worker
    assert (worker.concurrency, worker.queues, worker.processes) == (8, ("mail",), 1)


def test_every_key_can_be_said_in_the_environment(folder):
    examples = {key.variable: key.example.strip("[]") for key in KEYS.values()}
    assert len(examples) == len(KEYS)
    found = resolve(folder, environment=examples)
    for path, key in KEYS.items():
        assert found.origins[path].words == key.variable
        assert value_at(found.settings, path) == key.kind.read(examples[key.variable])


def test_an_empty_variable_says_nothing(folder):
    found = said(folder, "tz: Europe/Paris", ROTA_TZ="", ROTA_LEASE=" ")
    assert found.settings.tz == "Europe/Paris"
    assert found.origins["lease"].words == "default"


def test_a_bad_variable_is_told_by_its_name(folder):
    with pytest.raises(BadSettings) as caught:
        resolve(folder, environment={"ROTA_WORKER_CONCURRENCY": "lots"})
    assert str(caught.value) == "ROTA_WORKER_CONCURRENCY: got 'lots', wanted a whole number from 1 to 10,000"
    assert caught.value.exit_code == 2


def test_all_that_is_wrong_is_one_error(folder):
    with pytest.raises(BadSettings) as caught:
        said(folder, "leese: 1\nlease: x\n", ROTA_DRAIN="y")
    assert len(caught.value.complaints) == 3
    assert str(caught.value).startswith("rota.yaml:1: leese: ")
    assert str(caught.value).endswith("(and 2 more: `rota lint` shows all)")


def test_variables_of_others_are_left_alone(folder):
    others = {"ROTA_PORT": "tcp://10.0.0.1:80", "ROTA_SERVICE_HOST": "10.0.0.1", "ROTA_DEBUG": "1", "PATH": "/bin"}
    assert read_environment(others, folder)[:2] == ({}, [])
    assert list(near_misses({**others, "ROTA_LEESE": "3s", "ROTA_WORKER_CONCURENCY": "2"})) == [
        ("ROTA_LEESE", "ROTA_LEASE"),
        ("ROTA_WORKER_CONCURENCY", "ROTA_WORKER_CONCURRENCY"),
    ]


def test_what_code_says_is_checked_where_it_is_said():
    with pytest.raises(UnknownZone):
        App(tz="Nowhere/At_All")
    with pytest.raises(BadDuration):
        App(lease="30")


def test_retention_is_the_stores_own_both_ways():
    assert RetentionPart().as_retention() == Retention()
    kept = Retention(succeeded_for=1, failed_for=2, cancelled_for=3, most_finished=4, occurrences_for=5)
    assert RetentionPart.from_retention(kept).as_retention() == kept


def test_the_sections_are_those_of_the_settings():
    assert {name for name in Settings.__struct_fields__ if f"{name}." in "".join(KEYS)} >= set(PARTS)
    assert all(isinstance(getattr(Settings(), name), part) for name, part in PARTS.items())


def test_the_levels_are_those_of_the_command_line():
    from rota.cli.log_lines import LEVELS as SHOWN  # noqa: PLC0415 - only this test needs the command line

    assert LEVELS == SHOWN


def test_the_sample_says_what_counts_anyway(folder):
    found = said(folder, sample("jobs.py"))
    assert found.settings == Settings(app="jobs.py")


def test_every_line_of_the_sample_may_be_uncommented(folder):
    text = "\n".join(
        line.replace("# ", "", 1) if line.lstrip().startswith("# ") else line for line in sample("a").splitlines()[3:]
    )
    found = said(folder, text)
    assert {origin.kind for origin in found.origins.values()} == {"file"}


def test_the_table_has_every_key_and_its_variable():
    rows = settings_table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(KEYS)
    assert all(f"`{key.variable}`" in row for key, row in zip(KEYS.values(), rows, strict=True))
