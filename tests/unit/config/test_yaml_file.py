"""rota.yaml: what it may say, and what is said about a bad one: file, line, key, what was got and what is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.config.declared import NOTHING
from rota.config.settings import KEYS
from rota.config.yaml_file import read_file
from rota.config.yaml_text import LARGEST
from rota.model.micros import SECOND

WORDS = ("worker", "schedules", "tenants", "sources", "collections", "a: ", "task: t", "cron: ", "args: ", "kwargs: ")
DURATION = "wanted a duration such as 90s, 5m or 1h30m"

WRONG = [  # text, the line, and what is said about it
    ("leese: 30s", 1, "leese: there is no such setting; did you mean lease?"),
    (
        "\nwww: {}",
        2,
        "www: there is no such setting; there are alerting, alerts, app, channels, check_types, documents, drain",
    ),
    ("concurrency: 4", 1, "concurrency: there is no such setting; did you mean worker.concurrency?"),
    ("worker:\n  concurency: 4", 2, "worker.concurency: there is no such setting; did you mean worker.concurrency?"),
    ("worker: {x: 1}", 1, "worker.x: there is no such setting; there are worker.concurrency, worker.processes"),
    ("lease: 30", 1, f"lease: got '30', {DURATION}, at most 1d"),
    ("lease: 2d", 1, f"lease: got '2d', {DURATION}, at most 1d"),
    ("lease: -5s", 1, f"lease: got '-5s', {DURATION}"),
    ("lease:", 1, f"lease: got nothing, {DURATION}"),
    ("lease: [30s]", 1, f"lease: got a list, {DURATION}"),
    ("lease: {s: 30}", 1, f"lease: got a mapping, {DURATION}"),
    ("retention:\n  failed: soon", 2, f"retention.failed: got 'soon', {DURATION}"),
    (
        "tz: Europe/Pariss",
        1,
        "tz: got 'Europe/Pariss', wanted a timezone's IANA name such as Europe/Paris; did you mean",
    ),
    ("store: jobs.db", 1, "store: got 'jobs.db', wanted a store's URL such as sqlite:///jobs.db"),
    ("app: my jobs.py", 1, "app: got 'my jobs.py', wanted a target such as jobs.py"),
    ("namespace: my-app", 1, "namespace: got 'my-app', wanted a letter, then up to 30 letters, digits or _"),
    ("worker: {concurrency: many}", 1, "worker.concurrency: got 'many', wanted a whole number from 1 to 10,000"),
    ("worker: {concurrency: 0}", 1, "worker.concurrency: got '0', wanted a whole number from 1 to 10,000"),
    ("worker: {concurrency: 010}", 1, "worker.concurrency: got '010', wanted a whole number from 1 to 10,000"),
    ("worker: {concurrency: 1_000}", 1, "worker.concurrency: got '1_000', wanted"),
    ("worker: {concurrency: 4.0}", 1, "worker.concurrency: got '4.0', wanted"),
    ("worker: {concurrency: true}", 1, "worker.concurrency: got 'true', wanted"),
    (
        "worker: {queues: []}",
        1,
        "worker.queues: got an empty list, wanted a list of queue names such as [default, mail]",
    ),
    ("worker: {queues: [a, [b]]}", 1, "worker.queues: got a list within a list, wanted a list of queue names"),
    ("worker: {queues: [a b]}", 1, "worker.queues: got 'a b', wanted a list of queue names"),
    ("worker: {recycle_memory: 5}", 1, "worker.recycle_memory: got '5', wanted a size such as 512M or 2G"),
    ("worker: {recycle_memory: 1X}", 1, "worker.recycle_memory: got '1X', wanted a size such as 512M or 2G"),
    ("log: {level: verbose}", 1, "log.level: got 'verbose', wanted debug, info, warning or error"),
    ("worker: 4", 1, "worker: got '4', wanted settings below it, such as `concurrency: …`"),
    ("worker: [1]", 1, "worker: got a list, wanted settings below it"),
    ("lease: 30s\ntz: UTC\nlease: 20s", 3, "lease: is said twice, first in line 1; keep one of them"),
    ("worker:\n  concurrency: 1\n  concurrency: 2", 3, "worker.concurrency: is said twice, first in line 2"),
    ("- lease", 1, "got a list, wanted settings such as `store: sqlite:///jobs.db`"),
    ("lease", 1, "got 'lease', wanted settings such as"),
    ("? [a]\n: b", 1, "got a list, wanted the name of a setting"),
    ("null: 1", 1, "got nothing, wanted the name of a setting"),
    ("worker:\n\tconcurrency: 3", 2, "got a tab at the line's beginning, wanted spaces"),
    ("lease: '30s", 1, "is no YAML here"),
    ("lease 30s\nstore: x", 2, "got a colon where none can stand: look for one that is missing in the line before"),
    ("lease: 30s\n---\ntz: UTC", 2, "got a second document, wanted one"),
    ("lease: *unknown", 1, "is no YAML here: found undefined alias"),
    ("&a lease: *a", 1, f"lease: got 'lease', {DURATION}"),
    ("worker: &w {queues: *w}", 1, "worker.queues: got a mapping, wanted a list"),
    ("app: !!python/object/apply:os.system ['exit 1']", 1, "app: got the tag !!python/object/apply:os.system, wanted"),
    ("app: !mine jobs.py", 1, "app: got the tag !mine, wanted"),
    ("app: !!binary am9icw==", 1, "app: got the tag !!binary, wanted"),
]


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(text: str | bytes):
        (tmp_path / "rota.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
        return read_file(tmp_path / "rota.yaml")

    return read


@pytest.mark.parametrize(("text", "line", "words"), WRONG, ids=[text for text, _, _ in WRONG])
def test_a_slip_is_told_with_its_line_and_what_is_wanted(read, text, line, words):
    assert len(read(text).complaints) == 1
    said = read(text).complaints[0]
    assert said.startswith(f"rota.yaml:{line}: {words}"), said


def test_everything_that_is_wrong_is_told(read):
    reading = read("leese: 1\nworker:\n  concurrency: x\n  queus: [a]\ntz: UTC\n")
    assert [said.split(": ")[0] for said in reading.complaints] == ["rota.yaml:1", "rota.yaml:3", "rota.yaml:4"]
    assert reading.layer["tz"].value == "UTC"


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "{}", "~", "worker:\nlog: ~\n", b"\xef\xbb\xbf"])
def test_a_file_that_says_nothing_is_fine(read, text):
    assert read(text) == ({}, [], NOTHING)


def test_values_are_what_was_written_and_not_what_yaml_makes_of_it(read):
    layer = read("app: no\nnamespace: yes\nworker: {queues: [on, 1, '2']}\nlease: '40s'\n").layer
    said = {path: value.value for path, value in layer.items()}
    assert said == {"app": "no", "namespace": "yes", "worker.queues": ("on", "1", "2"), "lease": 40 * SECOND}


def test_nothing_at_a_key_without_a_default_means_none_of_it(read):
    value, origin = read("tz: UTC\nstore: ~\n").layer["store"]
    assert value is None
    assert origin.words == "rota.yaml:2"


def test_aliases_and_the_byte_order_mark_are_understood(read):
    layer = read(b"\xef\xbb\xbfretention:\n  failed: &long 90d\n  succeeded: *long\n").layer
    assert layer["retention.failed"].value == layer["retention.succeeded"].value == 90 * 86_400 * SECOND


def test_a_relative_path_begins_where_the_file_is(read, tmp_path):
    assert read("store: sqlite:///jobs.db").layer["store"].origin.folder == tmp_path


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            b"lease: 30s\n\xff\xfe\x00",
            "rota.yaml:2: got bytes that are no UTF-8, wanted a text file of settings in YAML",
        ),
        (b"a: 1\nb: \x00\n", "rota.yaml:2: got the character '\\x00', wanted a text file of settings in YAML"),
        (b"[" * 100_000, "rota.yaml is nested too deeply"),
        (b"#" * (LARGEST + 1), "rota.yaml is larger than 1,048,576 bytes"),
        ("a: \ufffe\n".encode(), "rota.yaml is no YAML: unacceptable character"),
    ],
    ids=["utf-16", "zero", "deep", "large", "odd"],
)
def test_what_is_no_text_of_settings_is_told(read, data, words):
    assert read(data).complaints[0].startswith(words)


def test_a_folder_and_a_link_to_nowhere_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    assert read_file(tmp_path / "folder").complaints == ["folder is a folder; wanted a file of settings in YAML"]
    assert read_file(tmp_path / "link").complaints == ["link cannot be read: No such file or directory"]


def test_a_file_that_cannot_be_read_is_told():
    assert read_file(Path("/proc/self/mem")).complaints == ["/proc/self/mem cannot be read: Input/output error"]


def test_a_password_in_a_bad_url_is_not_told(read):
    (said,) = read("store: postgresql//ann:hunter2@host/db").complaints
    assert "hunter2" not in said
    assert "postgresql//ann:***@host/db" in said


@settings(deadline=None)
@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from([*KEYS, *WORDS, ":", " ", "\n", "\n  ", "[", "{", "}", ",", "&a ", "*a"])).map("".join)
)
def test_no_text_whatsoever_is_more_than_a_complaint(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
    reading = read_file(path)
    assert all(isinstance(said, str) and "any.yaml" in said for said in reading.complaints)
    assert set(reading.layer) <= set(KEYS)
