"""Reminds customers of open orders: the orders themselves are the queue.

python reminders.py mongodb://localhost:27017/shop
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pymongo
from bson import ObjectId  # noqa: TC002 - the dataclass needs it at run time

from rota.documents import DocumentQueue, MongoSource

log = logging.getLogger("reminders")


@dataclass
class Order:
    """The part of an order that a reminder needs."""

    id: ObjectId
    customer: str
    total: float


def remind(order: Order) -> None:
    log.info("dear %s, your order over %.2f is still open", order.customer, order.total)


def place_order(orders: pymongo.collection.Collection, customer: str, total: float, first: datetime) -> None:
    """What the shop does already, with three fields more."""
    orders.insert_one(
        {
            "customer": customer,
            "total": total,
            "status": "open",
            "sleepUntil": first,
            "interval": "0 9 * * *",  # then every day at nine
            "repeatUntil": first + timedelta(days=7),
        }
    )


def pay(orders: pymongo.collection.Collection, customer: str) -> None:
    """A paid order is no longer open, so the condition below leaves it out."""
    orders.update_many({"customer": customer}, {"$set": {"status": "paid"}})


def make_queue(orders: pymongo.collection.Collection) -> DocumentQueue:
    source = MongoSource(orders, condition={"status": "open"})
    for made in source.prepare():
        log.info("%s", made)
    return DocumentQueue(source, remind, type=Order, tz="Europe/Vienna", concurrency=20)


def main(url: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    orders = pymongo.MongoClient(url).get_default_database("shop")["orders"]
    place_order(orders, "Ada", 42.0, first=datetime.now(UTC))
    make_queue(orders).run()  # until Ctrl-C or SIGTERM


if __name__ == "__main__":
    main(sys.argv[1])
