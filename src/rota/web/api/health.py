"""Whether this process is alive and ready, and its metrics: for whoever restarts and watches things."""

from __future__ import annotations

from importlib import import_module
from typing import Literal

from msgspec import Struct

from rota.health import Health, live, ready
from rota.web.refusals import Refusal
from rota.web.route import Answer, Ask, Route


class Healthy(Struct, kw_only=True):
    """Whether all is well, and how each thing that was looked at was found; no secrets: anybody may read it."""

    status: Literal["ok", "unhealthy"]
    checks: dict[str, str]


def get_live(ask: Ask) -> Answer:
    return _answer(live(ask.app.node))


def get_ready(ask: Ask) -> Answer:
    return _answer(ready(ask.app.open, ask.app.node))


def _answer(found: Health) -> Answer:
    return Answer(Healthy(status="ok" if found.is_well else "unhealthy", checks=found.checks), found.status)


def get_metrics(ask: Ask) -> bytes:
    try:
        metrics = import_module("rota.observe.metrics")
    except ImportError as err:
        message = "metrics need an extra: pip install 'rota[metrics]' where this server runs"
        raise Refusal(404, "no_metrics", message) from err
    text: bytes = metrics.metrics_text(ask.app)
    return text


_FAILING = {503: "It is not."}

ROUTES = (
    Route(method="GET", path="/live", role=None, handle=get_live, answer=Healthy, also=_FAILING,
          says="Whether this process is alive."),
    Route(method="GET", path="/ready", role=None, handle=get_ready, answer=Healthy, also=_FAILING,
          says="Whether it can do its part: the store answers."),
    Route(method="GET", path="/metrics", role="read", handle=get_metrics, answer=str,
          media="text/plain; version=0.0.4; charset=utf-8", says="What Prometheus reads.",
          also={404: "The extra for metrics is not installed."}),
)  # fmt: skip
