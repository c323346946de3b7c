"""Answers whether this process is alive and ready, and its metrics, for supervisors and monitoring."""

from __future__ import annotations

from rota.app import internals
from rota.errors import BadOption
from rota.inspector.health import Health, HealthFacts, live, ready
from rota.web.refusals import Refusal
from rota.web.route import Answer, Ask, Route


def get_live(ask: Ask) -> Answer:
    return _answer(live(internals(ask.app).node))


def get_ready(ask: Ask) -> Answer:
    return _answer(ready(ask.app.open, internals(ask.app).node))


def _answer(found: Health) -> Answer:
    return Answer(found.facts, found.status)


def get_metrics(ask: Ask) -> Answer:
    try:
        metrics = ask.app.metrics
    except BadOption as err:
        message = "metrics need an extra: pip install 'rota[metrics]' where this server runs"
        raise Refusal(404, "no_metrics", message) from err
    found = metrics.exposition(ask.accept)
    return Answer(found.text, headers={"Content-Type": found.kind})


_FAILING = {503: "It is not."}

ROUTES = (
    Route(method="GET", path="/live", role=None, handle=get_live, answer=HealthFacts, also=_FAILING,
          says="Whether this process is alive."),
    Route(method="GET", path="/ready", role=None, handle=get_ready, answer=HealthFacts, also=_FAILING,
          says="Whether it can do its part: the store answers."),
    Route(method="GET", path="/metrics", role="read", handle=get_metrics, answer=str,
          media="text/plain", says="What Prometheus reads; as OpenMetrics to clients that accept it.",
          also={404: "The extra for metrics is not installed."}),
)  # fmt: skip
