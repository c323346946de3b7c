"""Whether this process is alive and ready, and its metrics: for whoever restarts and watches things."""

from __future__ import annotations

from importlib import import_module
from typing import Literal

from msgspec import Struct

from rota.errors import StoreError
from rota.web.refusals import Refusal
from rota.web.route import Answer, Ask, Route


class Health(Struct, kw_only=True):
    """One answer, yes or no."""

    status: Literal["ok", "failing"]
    reason: str = ""  # no secrets: anybody may read it


def get_live(ask: Ask) -> Answer:
    node = ask.app.node
    if node is not None and not node.is_healthy:
        return Answer(Health(status="failing", reason="a loop of this process has not turned for a while"), 503)
    return Answer(Health(status="ok"))


def get_ready(ask: Ask) -> Answer:
    try:
        store = ask.app.open()
        seal = store.sealed()
    except StoreError:
        return Answer(Health(status="failing", reason="the store is out of reach"), 503)
    if seal is not None:
        return Answer(Health(status="failing", reason="the store is being moved"), 503)
    return Answer(Health(status="ok"))


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
    Route(method="GET", path="/live", role=None, handle=get_live, answer=Health, also=_FAILING,
          says="Whether this process is alive."),
    Route(method="GET", path="/ready", role=None, handle=get_ready, answer=Health, also=_FAILING,
          says="Whether it can do its part: the store answers."),
    Route(method="GET", path="/metrics", role="read", handle=get_metrics, answer=str,
          media="text/plain; version=0.0.4; charset=utf-8", says="What Prometheus reads.",
          also={404: "The extra for metrics is not installed."}),
)  # fmt: skip
