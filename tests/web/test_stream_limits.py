"""Streams end with their tokens; one token has a share of them, admins have a reserve, and none holds much memory."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from rota.app import internals
from rota.client.tokens import Identity
from rota.store.contract import LogLine
from rota.web.hub import MOST_BYTES, REPLAYED, Hub, Listener
from rota.web.refusals import Refusal
from rota.web.server import WebServer
from web.stage import expire
from web.test_streams import PATIENCE, first

EVENTS = "/api/v1/events"


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.fixture
def served(app, monkeypatch):
    monkeypatch.setattr("rota.web.hub.PACE", 0.02)
    server = WebServer(app, port=0).start()
    yield server
    server.stop()


def client_of(server, secret):
    return httpx2.Client(base_url=server.url, headers={"X-Admin-Token": secret}, timeout=PATIENCE)


@pytest.mark.parametrize("how", ["revoked", "expired"])
@pytest.mark.parametrize("what", ["events", "log"])
def test_a_stream_ends_with_its_token(app, served, how, what):
    token = app.tokens.create("ann", role="read")
    job = internals(app).registry.get("greet").enqueue("ann")
    store = app.open()
    store.append_logs([LogLine(job_id=job.id, at=store.now(), level="info", text="hello")])
    path = EVENTS if what == "events" else f"/api/v1/jobs/{job.id}/logs?follow=true"
    with client_of(served, token.secret) as client, client.stream("GET", path) as stream:
        lines = stream.iter_lines()
        first(lines, "counts" if what == "events" else "line")
        app.tokens.revoke(token.id) if how == "revoked" else expire(app, "ann")
        assert "revoked, or has expired" in first(lines, "end")["reason"]


def test_the_stream_of_a_good_token_goes_on_when_another_is_revoked(app, served):
    kept, gone = app.tokens.create("kept"), app.tokens.create("gone")
    with (
        client_of(served, kept.secret) as mine,
        client_of(served, gone.secret) as other,
        mine.stream("GET", EVENTS) as stream,
        other.stream("GET", EVENTS) as ended,
    ):
        lines, theirs = stream.iter_lines(), ended.iter_lines()
        first(lines, "counts")
        first(theirs, "counts")
        app.tokens.revoke(gone.id)
        first(theirs, "end")
        internals(app).registry.get("greet").enqueue("ann")
        assert first(lines, "job")["task"] == "greet"


def reader(number: int = 0, role: str = "read", address: str = "192.0.2.1") -> Listener:
    return Listener(Identity(f"token{number}", role, f"{number:012x}"), address)


async def begun(hub: Hub, *listeners: Listener) -> list:
    """Streams that have sent their first word, and stay open."""
    streams = [hub.stream(listener) for listener in listeners]
    for stream in streams:
        await anext(stream)
    return streams


async def closed(streams) -> None:
    for stream in streams:
        await stream.aclose()


def refusal_of(hub: Hub, listener: Listener) -> tuple[int, str] | None:
    try:
        hub.stream(listener)
    except Refusal as refusal:
        return refusal.status, refusal.fault.code
    return None


def test_one_token_has_a_share_of_the_streams_and_admins_a_reserve(app, monkeypatch):
    monkeypatch.setattr("rota.web.hub.MOST_LISTENERS", 6)
    monkeypatch.setattr("rota.web.hub.MOST_OF_ONE", 2)
    monkeypatch.setattr("rota.web.hub.RESERVED", 2)

    async def scene() -> None:
        hub = Hub(app)
        streams = await begun(hub, reader(1), reader(1), reader(2), reader(2))
        assert refusal_of(hub, reader(1)) == (429, "too_many_streams")
        assert refusal_of(hub, reader(3)) == (503, "too_many_listeners")
        assert refusal_of(hub, reader(3, "operate")) == (503, "too_many_listeners")
        streams += await begun(hub, reader(9, "admin"), reader(8, "admin"))
        assert refusal_of(hub, reader(7, "admin")) == (503, "too_many_listeners")
        await closed(streams)
        assert not hub._open
        await closed(await begun(hub, reader(1)))  # there is room again

    asyncio.run(scene())


def test_who_has_no_token_is_counted_by_address(app, monkeypatch):
    monkeypatch.setattr("rota.web.hub.MOST_OF_ONE", 1)
    anybody = Identity("anonymous", "read")

    async def scene() -> None:
        hub = Hub(app)
        streams = await begun(hub, Listener(anybody, "192.0.2.1"))
        assert refusal_of(hub, Listener(anybody, "192.0.2.1")) == (429, "too_many_streams")
        with pytest.raises(Refusal, match="this address has 1 streams open"):
            hub.stream(Listener(anybody, "192.0.2.1"))
        assert refusal_of(hub, Listener(anybody, "192.0.2.2")) is None
        await closed(streams)

    asyncio.run(scene())


def test_many_that_asked_before_any_of_them_began_do_not_get_past_the_limit(app, monkeypatch):
    monkeypatch.setattr("rota.web.hub.MOST_OF_ONE", 1)

    async def scene() -> bytes:
        hub = Hub(app)
        first_one, second = hub.stream(reader()), hub.stream(reader())
        await anext(first_one)
        said = await anext(second)
        await closed([first_one, second])
        return said

    assert b"event: end" in asyncio.run(scene())


def test_a_follower_that_replays_counts_and_is_read_a_little_at_a_time(app, monkeypatch):
    monkeypatch.setattr("rota.web.hub.MOST_OF_ONE", 1)
    job = internals(app).registry.get("greet").enqueue("ann")
    store = app.open()
    store.append_logs([LogLine(job_id=job.id, at=store.now(), level="info", text=f"line {n}") for n in range(120)])

    def follower() -> Listener:
        return Listener(Identity("ann", "read", "0" * 12), "", job.id)

    async def scene() -> bytes:
        hub = Hub(app)
        (stream,) = await begun(hub, follower())
        chunk = await anext(stream)  # and it reads no further
        assert refusal_of(hub, follower()) == (429, "too_many_streams")
        await stream.aclose()
        assert refusal_of(hub, follower()) is None
        return chunk

    assert asyncio.run(scene()).count(b"event: line") == REPLAYED


def test_a_listener_holds_a_bounded_number_of_bytes():
    async def scene() -> list[bytes | None]:
        listener = reader()
        for _ in range(3):
            listener.send(b"x" * (MOST_BYTES // 2))
        return [await listener.next(), await listener.next()]

    said, end = asyncio.run(scene())
    assert b"too slow" in said
    assert end is None


def test_one_large_chunk_is_sent_all_the_same():
    async def scene() -> bytes | None:
        listener = reader()
        listener.send(b"x" * (2 * MOST_BYTES))
        return await listener.next()

    assert len(asyncio.run(scene())) == 2 * MOST_BYTES
