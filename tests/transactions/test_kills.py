"""A process that is killed around the commit leaves one truth: the sale with its job, or neither."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from forked_python import ForkedPython

from transactions.shops import Shop

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import asyncio, os, signal, sqlite3, sys
import psycopg
from rota import App

url, path, namespace, insert, moment, way = sys.argv[1:]
app = App(url, namespace=namespace)
task = app.task(len, name="count")

def die(now):
    if now == moment:
        os.kill(os.getpid(), signal.SIGKILL)

def plain():
    connection = sqlite3.connect(path) if path else psycopg.connect(url)
    connection.execute(insert)
    task.using(tx=connection).enqueue("a")
    die("before")
    connection.commit()
    die("after")

async def coroutine():
    if path:
        import aiosqlite
        connection = await aiosqlite.connect(path)
    else:
        connection = await psycopg.AsyncConnection.connect(url)
    await connection.execute(insert)
    await task.using(tx=connection).aenqueue("a")
    die("before")
    await connection.commit()
    die("after")

asyncio.run(coroutine()) if way == "async" else plain()
"""


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_kill_leaves_the_sale_with_its_job_or_neither(kind: str, way: str, moment: str, tmp_path: Path):
    shop = Shop(kind, tmp_path)
    (tmp_path / "sell.py").write_text(SCRIPT, encoding="utf-8")
    path = shop.path if kind == "sqlite" else ""
    words = [str(tmp_path / "sell.py"), shop.url, path, shop.namespace, shop.insert, moment, way]
    process = ForkedPython(words, cwd=tmp_path, env=dict(os.environ))
    with process.stdout as output:
        said = output.read()
    assert process.wait(60) == -signal.SIGKILL, said
    expected = 1 if moment == "after" else 0
    assert (shop.sales(), len(shop.jobs())) == (expected, expected)
    assert shop.app.open().recount() == {}
    shop.close()
