"""How times, spans and tables look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import click
import pytest

from rota.cli.columns import Column
from rota.cli.output import aligned
from rota.cli.terminal import draw
from rota.cli.words import beside, count, listed, local, printable, relative, span
from rota.inspector.calls import call
from rota.inspector.typed_times import past_from

NOW = datetime(2026, 10, 14, 13, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0124, "12 ms"),
        (0.9996, "1 s"),
        (3.21, "3.2 s"),
        (59.97, "1 m"),
        (320, "5 m 20 s"),
        (3600, "1 h"),
        (12_000, "3 h 20 m"),
        (86_400 * 3 + 4 * 3600, "3 d 4 h"),
        (-1, "0 ms"),
    ],
)
def test_a_span_is_as_exact_as_it_is_short(seconds, text):
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "now"), (300, "in 5 m"), (-7200, "2 h ago"), (90, "in 90 s"), (86_400 * 3, "in 3 d"), (-5999, "100 m ago")],
)
def test_relative_times_have_one_unit(seconds, text):
    assert relative(NOW + timedelta(seconds=seconds), NOW) == text


def test_an_instant_is_shown_in_its_zone_or_in_utc():
    assert local(NOW.astimezone(ZoneInfo("America/New_York"))) == "2026-10-14 09:00 EDT"
    assert local(NOW.replace(second=5).astimezone(ZoneInfo("Asia/Kolkata"))) == "2026-10-14 18:30:05 IST"
    assert local(NOW) == "2026-10-14 13:00:00Z"
    assert beside(NOW, NOW + timedelta(hours=2)) == "2026-10-14 13:00:00Z (2 h ago)"


def test_words():
    assert call("mail.send", ["ann"], {"copies": 2}) == "mail.send('ann', copies=2)"
    assert (count(1, "job"), count(1200, "job")) == ("1 job", "1,200 jobs")
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")
    assert printable("a\x1b[31m\tb\nc\x9b") == "a\\x1b[31m\tb\nc\\x9b"


def test_a_duration_counts_back_and_a_time_is_taken_as_it_is():
    assert past_from("since", "2h", 7_200_000_000) == 0
    assert past_from("since", "1970-01-01T00:00:01+00:00", 0) == 1_000_000


def test_columns_are_aligned_whatever_their_colours():
    rows = [["a", click.style("long", fg="red"), "x"], ["bcd", "s", "y"]]
    assert [click.unstyle(line) for line in aligned(rows, indent=" ")] == [" a    long  x", " bcd  s     y"]


ITEMS = [("0123456789", "a call that is rather long to show", "2026-10-14 09:00 EDT, in 27 h", "on")]
COLUMNS = [
    Column("id", lambda item: item[0]),
    Column("call", lambda item: item[1], "cut"),
    Column("next", lambda item: item[2], "wrap at commas"),
    Column("state", lambda item: item[3], dropped=1),
]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (100, ["id          call                                next                           state", None]),
        (70, ["id          call                   next                   state", None, None]),
        (55, ["id          call                next", None, None]),
    ],
)
def test_a_table_gives_way_to_a_narrow_terminal(monkeypatch, width, lines):
    monkeypatch.setenv("COLUMNS", str(width))
    drawn = [line.rstrip() for line in click.unstyle(draw(ITEMS, COLUMNS)).splitlines()]
    assert len(drawn) == len(lines)
    assert all(len(line) <= width for line in drawn)
    assert drawn[1].startswith("0123456789  a call that")
    assert ("on" in drawn[1].split()) == (width > 55)
    assert drawn[0].split() == lines[0].split()


def test_a_cell_is_text_and_never_markup(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "[red]x[/red]" in draw([("[red]x[/red]",)], [Column("id", lambda item: item[0])])
