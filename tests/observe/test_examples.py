"""The dashboard, the alerts and the guide speak of metrics and labels that a real scrape has, and of no others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from alerts.stage import raised_alert
from observe.scraping import Scrape, scrape
from rota import every
from rota.store.contract import Node

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "monitoring"
GIVEN = {"instance", "job"}  # what Prometheus itself adds to each sample
UP = {"up": GIVEN}  # and its own metric
WORDS = {"and", "or", "unless", "on", "ignoring", "by", "without", "bool", "offset", "group_left", "group_right"}

SELECTED = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
GROUPED = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
NAME = re.compile(r"(?<![\w:])([a-zA-Z_:][\w:]*)(?!\s*\()(?![\w:])")


@pytest.fixture
def seen(stage) -> Scrape:
    """A scrape of an app to which everything has happened."""
    app = stage.app
    assert app.metrics.text()

    @app.task(name="t.tick")
    def tick() -> None: ...

    app.schedules.put("soon", tick.job(), every("10s"))
    scheduler = stage.a_scheduler()
    stage.skip(10)
    due = stage.still.due_schedules(10).schedules
    scheduler.fire(due, stage.still.now())
    scheduler.fire(due, stage.still.now())  # refused
    stage.skip(10)
    scheduler.turn()  # skipped
    stage.store.fail("due_schedules")
    scheduler._guarded_turn()
    stage.work_off(stage.a_worker())
    stage.events.emit("service.failed", 0, service="worker", error="")
    stage.events.emit("document.failed", 0, queue="reminders", started_at=0, document_id=1, failures=1, error="")
    stage.still.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker", "scheduler")))
    raised_alert(app, "mail", "mail")
    with app.running() as node:
        assert node.worker.is_idle.wait(10)
        return scrape(app)


def expressions() -> dict[str, str]:
    """Every expression of both files, by where it stands."""
    dashboard = json.loads((EXAMPLES / "grafana_dashboard.json").read_text())
    rules = yaml.safe_load((EXAMPLES / "rota_alerts.yml").read_text())
    panels = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in dashboard["panels"]
        for target in panel["targets"]
    }
    alerts = {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    assert panels
    assert alerts
    return {**panels, **alerts}


def words_in(text: str) -> set[str]:
    return {word.strip() for word in text.split(",") if word.strip()}


def names_in(expression: str) -> set[str]:
    bare = GROUPED.sub(" ", re.sub(r"\{[^}]*\}|\[[^\]]*\]|\"[^\"]*\"", " ", expression))
    return set(NAME.findall(bare)) - WORDS


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('sum by (a) (rate(x_total{b="c d"}[5m])) > 0 and time() - y == 1e3', {"x_total", "y"}),
        ("max(a_b) / max(c)", {"a_b", "c"}),
    ],
)
def test_names_are_found_in_expressions(expression, names):
    assert names_in(expression) - {"e3"} == names


def test_every_metric_and_label_that_is_used_exists(seen):
    known = {**seen.names, **UP}
    for place, expression in expressions().items():
        names = names_in(expression)
        assert names, place
        assert names <= set(known), (place, names - set(known))
        for name, matchers in SELECTED.findall(expression):
            labels = {re.split(r"[=!]", matcher)[0].strip() for matcher in matchers.split(",")}
            assert labels <= known[name] | GIVEN, (place, name, labels)
        at_hand = set().union(*(known[name] for name in names)) | GIVEN
        for labels in GROUPED.findall(expression):
            assert words_in(labels) <= at_hand, (place, labels)


def test_texts_of_alerts_and_legends_use_labels_that_their_expressions_leave():
    rules = yaml.safe_load((EXAMPLES / "rota_alerts.yml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        used = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        left = set().union(*map(words_in, GROUPED.findall(rule["expr"])), GIVEN, {"service"})
        assert used <= left, rule["alert"]
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"warning", "critical"}


def test_selected_values_exist(seen):
    for place, expression in expressions().items():
        for name, matchers in SELECTED.findall(expression):
            for matcher in matchers.split(",") if name not in UP else ():
                label, value = re.fullmatch(r'\s*(\w+)="([^"]*)"\s*', matcher).groups()
                if name != "scheduler_runs_total":  # no run has failed in this scrape
                    assert value in seen.labels(name, label), (place, matcher)


def test_the_scrape_config_names_the_rules_and_paths_that_exist():
    config = yaml.safe_load((EXAMPLES / "prometheus.yml").read_text())
    assert config["rule_files"] == ["rota_alerts.yml"]
    paths = {each.get("metrics_path", "/metrics") for each in config["scrape_configs"]}
    assert paths == {"/metrics", "/metrics/own"}


def test_panels_have_places_of_their_own():
    panels = json.loads((EXAMPLES / "grafana_dashboard.json").read_text())["panels"]
    taken = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken))
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_guide_has_all_metrics_with_their_labels_and_no_others(seen):
    page = (ROOT / "docs" / "guides" / "monitoring.md").read_text()
    told = {
        name: set(re.findall(r"`(\w+)`", labels))
        for name, labels in re.findall(r"^\| `((?:rota|scheduler)_\w+)` \| ([^|]*)\|", page, re.MULTILINE)
    }
    real = {}
    for family in seen.families.values():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if name.startswith(("rota_", "scheduler_")):
            real[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
    assert told == real
