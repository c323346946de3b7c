"""Input that was made to break an importer: one bad item never hides the others, and a command stays what it was."""

from __future__ import annotations

import pickle
import zlib
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from rota.cli.main import main
from rota.errors import BadOption
from rota.importers.crontab import code_of, crontab_items, read_crontab
from rota.importers.found import Tasks, UnsupportedItem, check_size, distinct
from rota.importers.rota_file import Unreadable, read_export
from rota.importers.rq_scheduler import _job, rq_items
from rota.importers.yaml_fragment import fragment_of
from rota.tasks.task import Registry

NOW = datetime(2026, 3, 7, 12, tzinfo=UTC)
DAILY = "0 1 * * * "


def commands_of(text: str, source: str = "crontab") -> dict[str, str]:
    """What the written code runs for each task."""
    lines = read_crontab(text)
    items = crontab_items(lines, Tasks(Registry()), tz="UTC", task=None, module="m", prefix="", now=NOW)
    code = code_of(items, lines, source)
    ran: list[str] = []
    names = {"App": type("App", (), {"task": lambda _, function: function})}
    exec(code.replace("from rota import App", ""), names)  # noqa: S102 - that it is harmless is what is tested
    names["run"] = lambda command, **_: ran.append(command)
    found = {}
    for item in items:
        if item.spec is not None:
            names[item.spec.task.removeprefix("m.")]()
            found[item.id] = ran.pop()
    return found


@pytest.mark.parametrize(
    "command",
    [
        """echo "it's" '''x''' \\n \\\\ \\' {0} {source}""",
        "echo a\x0cb",
        "echo a\u2028b\x85c\x1cd",
        "echo a\rrm x",
        "echo a\\ ",
        "\u00a0echo",
        "import x.png",
        "class",
        "run",
        "app",
        "os",
        "print",
        "None",
    ],
)
def test_the_written_code_runs_exactly_the_command(command):
    assert list(commands_of(f"{DAILY}{command}\n{DAILY}other\n").values()) == [command, "other"]


def test_commands_whose_names_are_alike_keep_functions_of_their_own():
    text = "".join(f"{DAILY}{command}\n" for command in ("a-b", "a_b", "a b", "c", "c", "c 2"))
    assert list(commands_of(text).values()) == ["a-b", "a_b", "a b", "c", "c", "c 2"]
    assert distinct(["a", "a", "a-2", "a"]) == ["a", "a-3", "a-2", "a-4"]


@pytest.mark.parametrize(
    "source", ['a"""\nraise SystemExit("run")\n"""', "a\\N{x}", "a\nraise SystemExit(1)", "\udcff"]
)
def test_the_name_of_the_file_cannot_become_code(source):
    assert commands_of(f"{DAILY}echo\n", source) == {"echo": "echo"}
    assert fragment_of([], source).split("\n")[1] == "schedules: {}"


def test_a_crontab_is_bounded(tmp_path, monkeypatch):
    with pytest.raises(BadOption, match="more than 1,000 settings"):
        read_crontab("".join(f"A{number}=1\n" for number in range(2_000)))
    assert "NUL byte" in crontab_items(
        read_crontab(f"{DAILY}a\0b\n"), Tasks(Registry()), tz="UTC", task="t", module="", prefix="", now=NOW
    )[0].reason  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "large").write_text(f"{DAILY}true\n" * 80_000)
    done = CliRunner().invoke(main, ["import", "crontab", "large", "--task", "t"])
    assert (done.exit_code, "larger than 1 MB" in done.output) == (2, True)


def call(function="shop.a", args=(), kwargs=None) -> bytes:
    return pickle.dumps((function, None, args, {} if kwargs is None else kwargs))


def nested(times: int) -> list:
    found: list = ["x"]
    for _ in range(times):
        found = [found, found]
    return found


def cyclic() -> list:
    found: list = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("at", "data", "meta"),
    [
        (0, call(function=5), {}),
        (0, call(function="a\0b"), {}),
        (0, call(args=5), {}),
        (0, call(args=(nested(60),)), {}),
        (0, call(args=(cyclic(),)), {}),
        (0, call(), []),
        (0, call(), {"interval": "abc"}),
        (0, call(), {"interval": 10**30}),
        (0, call(), {"interval": 60, "repeat": "x"}),
        (0, call(), {"cron_string": 5}),
        (float("inf"), call(), {}),
        (10**18, call(), {}),
        (0, zlib.compress(b"\0" * 20_000_000), {}),
        (0, b"(X\x03\x00\x00\x00a.bN(cbuiltins\nbytearray\n(I1000000000\ntRt}t.", {}),
        (0, b"\x80\x02Nr\xff\xff\xff\x7f.", {}),  # a table of 2 billion places
    ],
)
def test_a_hostile_job_of_rq_is_named_and_the_others_are_read(at, data, meta):
    bad = _job("bad", at, {b"data": data, b"meta": pickle.dumps(meta)})
    good = _job("good", 1_800_000_000, {b"data": call(), b"meta": pickle.dumps({"interval": 60})})
    items = rq_items([bad, good], Tasks(Registry()), tz="UTC", prefix="", now=NOW)
    assert [bool(item.reason) for item in items] == [True, False]


@pytest.mark.parametrize("values", [nested(60), cyclic(), {"a": ["x" * 1_000_000] * 100}])
def test_a_few_bytes_that_stand_for_many_values_are_refused(values):
    with pytest.raises(UnsupportedItem, match="too long or too deeply nested"):
        check_size("a", values)


@pytest.mark.parametrize(
    "text",
    [
        "x: &x {a: 1}\ny: {<<: [*x, *x]}\n",
        f"x: {'9' * 5000}\n",
        "x: 2026-99-99\n",
        "x: \0\n",
        "x: !!python/object/apply:os.system [id]\n",
    ],
)
def test_a_hostile_export_is_unreadable_and_no_crash(tmp_path, text):
    path = tmp_path / "export.yaml"
    path.write_text(text)
    with pytest.raises(Unreadable):
        read_export(path)


def test_a_line_of_an_export_ends_only_where_it_was_ended(tmp_path):
    path = tmp_path / "export.jsonl"
    path.write_text('{"id": "a", "args": ["x\u2028y\x85z"]}\n\n{"id": "b"}\n')
    assert [(one.name, one.said.get("args")) for one in read_export(path)] == [("a", ["x\u2028y\x85z"]), ("b", None)]
    path.write_text('{"id": "a", "args": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    with pytest.raises(Unreadable, match="line 1"):
        read_export(path)
