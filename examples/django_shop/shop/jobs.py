"""The shop's jobs. Rota imports jobs.py of every installed app."""

from rota import every
from rota.django import schedule, task
from shop.models import Order


@task(retries=3)
def charge(order: int) -> str:
    """Take the money for an order."""
    Order.objects.filter(pk=order).update(is_paid=True)
    return str(Order.objects.get(pk=order))


@schedule(every("1m"))
def sales() -> int:
    """Count what was paid."""
    return Order.objects.filter(is_paid=True).count()
