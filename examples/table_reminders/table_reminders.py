"""Reminds customers of open orders in a PostgreSQL table: the rows themselves are the queue.

python table_reminders.py postgresql://localhost/shop
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from rota.documents import DocumentQueue, Fields, PostgresSource

log = logging.getLogger("table_reminders")

# What the shop has already, and the columns of a schedule beside it.
TABLE = """CREATE TABLE IF NOT EXISTS orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer text NOT NULL,
    total numeric NOT NULL,
    status text NOT NULL DEFAULT 'open',
    remind_at timestamptz,
    remind_every text,
    remind_until timestamptz,
    delete_after boolean,
    locked_until timestamptz,
    locked_by text
)"""
FIELDS = Fields(
    sleep_until="remind_at",
    interval="remind_every",
    repeat_until="remind_until",
    auto_remove="delete_after",
    locked_until="locked_until",
    locked_by="locked_by",
)


@dataclass
class Order:
    """The part of an order that a reminder needs."""

    id: int
    customer: str
    total: float


def remind(order: Order) -> None:
    log.info("dear %s, your order over %.2f is still open", order.customer, order.total)


def place_order(shop: psycopg.Connection[Any], customer: str, total: float, first: datetime) -> None:
    """Insert an order that is reminded of at `first`, and then every day at nine for a week."""
    shop.execute(
        "INSERT INTO orders (customer, total, remind_at, remind_every, remind_until) VALUES (%s, %s, %s, %s, %s)",
        (customer, total, first, "0 9 * * *", first + timedelta(days=7)),
    )


def pay(shop: psycopg.Connection[Any], customer: str) -> None:
    """A paid order is no longer open, so the condition below leaves it out."""
    shop.execute("UPDATE orders SET status = 'paid' WHERE customer = %s", (customer,))


def make_queue(url: str) -> DocumentQueue:
    source = PostgresSource(url, "orders", fields=FIELDS, condition={"status": "open"})
    for made in source.prepare():
        log.info("%s", made)
    return DocumentQueue(source, remind, type=Order, tz="Europe/Vienna", concurrency=20)


def main(url: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with psycopg.connect(url, autocommit=True) as shop:
        shop.execute(TABLE)
        place_order(shop, "Ada", 42.0, first=datetime.now(UTC))
    make_queue(url).run()  # until Ctrl-C or SIGTERM


if __name__ == "__main__":
    main(sys.argv[1])
