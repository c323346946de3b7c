"""A job ends in an async transaction of its task if and only if that commits, whichever library holds it."""

from __future__ import annotations

import asyncio
from contextlib import closing
from queue import Queue

import pytest

from rota import BadOption, LeaseLost, current_job
from rota.testing import Kit
from transactions.shops import ASYNC, Shop, async_session, plain


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, tmp_path):
    shop = Shop(request.param, tmp_path)
    yield shop
    shop.close()


def finished(shop, task):
    """The one job of a task, when it has ended."""
    with shop.app.running(scheduler=False, concurrency=1):
        job = task.enqueue()
        job.result("60s")
    return job.refresh()


@pytest.mark.parametrize("way", ASYNC)
def test_a_job_ends_with_its_effects(shop, way):
    @shop.app.task(name="sell", retries=1, backoff="1ms")
    async def sell() -> str:
        async with ASYNC[way](shop) as held:
            await current_job.afinish_in(held.tx, f"sold at {current_job.attempt}")
            await (held.rollback if current_job.attempt == 1 else held.commit)()
        if current_job.attempt == 1:
            raise RuntimeError("not yet")
        return "what the function returns is ignored then"

    job = finished(shop, sell)
    assert (job.state, job.result(), job.attempts, shop.sales()) == ("succeeded", "sold at 2", 2, 1)
    assert shop.app.open().recount() == {}


def test_a_coroutine_may_end_its_job_in_a_plain_connection(shop):
    @shop.app.task(name="sell")
    async def sell() -> None:
        with plain(shop) as held:
            await current_job.afinish_in(held.tx, "sold")
            held.commit()

    assert finished(shop, sell).result() == "sold"


def test_a_plain_call_with_an_async_transaction_says_what_to_write(shop):
    @shop.app.task(name="sell")
    async def sell() -> str:
        async with async_session(shop) as held:
            with pytest.raises(BadOption, match=r"await current_job\.afinish_in"):
                current_job.finish_in(held.tx)
        return "refused"

    assert finished(shop, sell).result() == "refused"


def test_a_worker_that_lost_its_job_cannot_end_it(tmp_path):
    shop = Shop("sqlite", tmp_path)

    @shop.app.task(name="sell")
    async def sell() -> None:
        try:
            with closing(shop.connect()) as thief, thief:
                thief.execute(f"UPDATE {shop.namespace}_job SET lease_no = lease_no + 1")  # noqa: S608
            async with async_session(shop) as held:
                with pytest.raises(LeaseLost):
                    await current_job.afinish_in(held.tx)
                await held.rollback()
            ends.put("refused")
        except BaseException as err:  # noqa: BLE001 - whatever it is, the test shows it
            ends.put(err)

    ends: Queue = Queue()
    with shop.app.running(scheduler=False):
        sell.enqueue()
        assert (ends.get(timeout=60), shop.sales()) == ("refused", 0)
    shop.close()


def test_a_task_that_is_cancelled_meanwhile_leaves_no_thread_at_the_connection(shop):
    """The call ends before the cancellation arrives, so that the transaction can be rolled back."""

    @shop.app.task(name="sell")
    async def sell() -> str:
        async with async_session(shop) as held:
            ending = asyncio.ensure_future(current_job.afinish_in(held.tx, "sold"))
            await asyncio.sleep(0)
            ending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await ending
            await held.rollback()
        return "rolled back"

    assert (finished(shop, sell).result(), shop.sales()) == ("rolled back", 0)


def test_in_a_kit_a_job_ends_at_once(shop):
    @shop.app.task(name="sell")
    async def sell() -> None:
        async with async_session(shop) as held:
            await current_job.afinish_in(held.tx, "sold")
            await held.commit()

    shop.app.close()
    with Kit(shop.app) as kit:
        sell.enqueue()
        (job,) = kit.run_due()
        assert (job.result(), shop.sales()) == ("sold", 1)
