"""`app.aio` has every verb of the app, with the same parameters, and none of its own."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from rota import App, LockHeld

INSIDE = {  # methods that other parts of Rota call, and that no guide or reference offers
    "jobs": {"note", "read", "wait"},
    "schedules": {"apply", "plan", "register", "retire_gone"},
    "tokens": {"bearer", "good_ids"},
    "documents": {"add", "catalogue", "close", "documents", "events"},
    "lock": {"held_elsewhere", "pauses", "try_acquire"},
}
OTHERWISE = {  # of the app itself: declarations, and what has an async form of another name
    *("name", "version", "settings", "metrics", "aio", "asgi", "task", "schedule", "codec", "on", "use"),
    *("start", "stop", "running", "open", "close"),  # `async with app.running()`
}
DECLARES = {"sources": {"declare"}}  # of a part: a declaration waits for nothing
PARTS = ["jobs", "schedules", "tenants", "sources", "queues", "tokens", "documents"]


@pytest.fixture
def app():
    app = App("memory://")
    yield app
    app.close()


def public(thing, but=()):
    return {name for name in dir(thing) if not name.startswith("_")} - set(but)


def parameters(function):
    wanted = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in wanted if one.name != "self"]


def test_the_app_and_its_aio_have_the_same_names(app):
    assert public(app, OTHERWISE) == public(app.aio, {"call", "close", "send"})


@pytest.mark.parametrize("part", [*PARTS, "lock"])
def test_a_part_and_its_async_form_have_the_same_verbs_with_the_same_parameters(app, part):
    plain = app.lock("name") if part == "lock" else getattr(app, part)
    awaited = app.aio.lock("name") if part == "lock" else getattr(app.aio, part)
    verbs = public(plain, INSIDE.get(part, set()) | DECLARES.get(part, set()))
    assert verbs == public(awaited, {"call"})
    for verb in verbs - {"name", "fence"}:
        form = inspect.getattr_static(type(awaited), verb)
        assert parameters(getattr(form, "__wrapped__", form)) == parameters(getattr(type(plain), verb)), verb


@pytest.mark.parametrize("verb", ["changes", "lock", "enqueue", "enqueue_many"])
def test_a_verb_of_the_app_has_the_same_parameters(app, verb):
    form = inspect.getattr_static(type(app.aio), verb)
    assert parameters(getattr(form, "__wrapped__", form)) == parameters(getattr(App, verb))


def test_the_verbs_that_were_missing_work(app):
    async def use():
        await app.aio.enqueue("nobody.knows")
        assert [queue.name for queue in await app.aio.queues.list()] == ["default"]
        await app.aio.queues.pause("default", by="me")
        token = await app.aio.tokens.create("ci")
        assert [one.id for one in (await app.aio.tokens.list()).items] == [token.id]
        assert len((await app.aio.changes()).items) == 2
        assert await app.aio.schedules.sync() == 0

    asyncio.run(use())


def test_a_lock_has_one_owner_and_waiting_for_it_holds_no_thread(app):
    async def use():
        async with app.aio.lock("reindex") as lock:
            await lock.extend()
            assert (lock.name, lock.fence) == ("reindex", 1)
            waits = [asyncio.create_task(app.aio.lock("reindex", wait="20s").acquire()) for _ in range(1)]
            waits += [asyncio.create_task(app.aio.lock("reindex", wait="300ms").acquire()) for _ in range(20)]
            await app.aio.enqueue("nobody.knows")  # though 21 wait, and there are 4 threads
            with pytest.raises(LockHeld):
                await app.aio.lock("reindex").__aenter__()
            assert await asyncio.gather(*waits[1:]) == [False] * 20
        assert await waits[0]

    asyncio.run(use())
