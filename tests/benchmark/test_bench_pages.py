"""The README's table and the charts are made from what the suites have written."""

import json
from dataclasses import asdict
from xml.etree import ElementTree as ET

import pytest
from bench import chart, results, svg, table
from bench.measure import compare, point, within

PEERS = {"Huey": 0.0004, "SAQ": 0.001}


def written(folder, suite, figures, **facts):
    content = {"python": "3.11", "cores": 2, "rounds": 5, "quick": False, **facts}
    content["figures"] = [asdict(figure) for figure in figures]
    (folder / f"{suite}.json").write_text(json.dumps(content))


def store_figures():
    return [
        *(compare(f"drain vs {name}", [0.0001], [pace]) for name, pace in PEERS.items()),
        compare("drain, share of the limit", [0.0001], [0.00002], 0.1),
        within("drain, worker CPU per 1,000 jobs", 0.025, [0.025], 0.03, "ms"),
        compare("single enqueue vs Huey", [0.0002], [0.0003]),
        compare("idle to running, p50 vs Huey", [0.0015], [0.003]),
        compare("round trips per job drained vs limit", [0.02], [0.01], unit="trips"),
        compare("round trips per job drained vs SAQ", [0.02], [6.0], unit="trips"),
    ]


@pytest.fixture
def folder(tmp_path):
    for kind in results.STORES:
        written(tmp_path, kind, store_figures(), server=f"{kind} 1.0")
    sizes = (1_000, 10_000)
    written(tmp_path, "growth_redis", [point("redis: exchange", size, [0.001], "us") for size in sizes])
    return tmp_path


def test_figures_are_read_as_they_were_written(folder):
    assert results.read("redis", folder).figures == tuple(store_figures())
    assert results.read("time", folder) is None


def test_a_line_has_its_points_in_order(folder):
    assert results.read("growth_redis", folder).line("redis: exchange") == [(1_000, 1_000.0), (10_000, 1_000.0)]


def test_a_row_names_the_peer_that_is_beaten_least(folder):
    lines = table.table(results.of_stores(folder)).splitlines()
    assert lines[0] == f"| {table.HEAD} | SQLite | Redis | PostgreSQL | MongoDB | MongoDB replica set |"
    rows = {line.split("|")[1].strip(): line.split("|")[3].strip() for line in lines if line.startswith("| ")}
    assert rows["drain"] == "10,000/s (4.0x Huey)"
    assert rows["… share of a bare loop that keeps nothing"] == "20 %"
    assert rows["… worker CPU per 1,000 jobs"] == "25 ms"
    assert rows["… round trips per job"] == "0.02 (SAQ 6.00)"
    assert rows["enqueue one"] == "200 µs (1.5x Huey)"
    assert rows["from an idle worker to running"] == "1.5 ms (2.0x Huey)"
    assert rows["enqueue many"] == table.NONE
    assert "Python 3.11, 2 cores, medians of 5 rounds." in lines[-1]


@pytest.mark.parametrize(("load", "is_told"), [(0.3, False), (6.5, True)])
def test_a_busy_machine_is_told(folder, load, is_told):
    written(folder, "redis", store_figures(), load=load)
    assert ("busy (load 6.5)" in table.table(results.of_stores(folder))) is is_told


def test_the_table_takes_the_place_of_the_last_one():
    page = f"# Rota\n\n{table.BEGIN}\nold\n{table.END}\n\nmore\n"
    assert table.placed(page, "new") == f"# Rota\n\n{table.BEGIN}\nnew\n{table.END}\n\nmore\n"
    with pytest.raises(ValueError, match="no place"):
        table.placed("# Rota\n", "new")


def test_the_readme_has_a_place_for_the_table():
    assert table.placed(table.README.read_text(), "new")


def test_charts_are_drawn_of_what_there_is(folder, tmp_path):
    images = tmp_path / "images"
    assert [file.name for file in chart.write(folder, images)] == ["drain.svg", "growth.svg"]
    for file in images.iterdir():
        assert ET.parse(file).getroot().tag.endswith("svg")  # noqa: S314 - drawn by us
    drawn = (images / "drain.svg").read_text()
    assert "10,000" in drawn
    assert "bare loop" in drawn


def test_no_drain_is_drawn_before_all_stores_are_measured(folder, tmp_path):
    (folder / "mongo.json").unlink()
    assert [file.name for file in chart.write(folder, tmp_path / "images")] == ["growth.svg"]


def test_a_logarithmic_scale_ends_at_powers_of_ten():
    scale = svg.scale_for([120.0, 34_000.0], 0, 300)
    assert scale.ticks() == [100, 1_000, 10_000, 100_000]
    assert [scale.at(tick) for tick in scale.ticks()] == [0, 100, 200, 300]


def test_labels_do_not_lie_on_each_other():
    assert chart.spread({"a": 10.0, "b": 12.0, "c": 100.0}) == {"a": 10.0, "b": 25.0, "c": 100.0}
