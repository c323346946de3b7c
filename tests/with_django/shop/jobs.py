"""What autodiscovery finds."""

from __future__ import annotations

import os

from asgiref.sync import sync_to_async

from rota import every
from rota.django import schedule, task
from with_django.shop.models import Order


@task
def count_orders() -> int:
    return Order.objects.count()


@task
async def acount_orders() -> int:
    return await Order.objects.acount()


@task(executor="process")
def count_in_a_process() -> list[int]:
    return [Order.objects.count(), os.getpid()]


@task(queue="mail")
def receipt(order: int) -> str:
    return Order.objects.get(pk=order).name


@task
async def rename(order: int, name: str) -> None:
    await sync_to_async(Order.objects.filter(pk=order).update)(name=name)


@schedule(every("1h"))
def tidy() -> None: ...
