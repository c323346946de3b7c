"""What the shop sells to whom."""

from django.db import models


class Order(models.Model):
    """An order, and whether it is paid."""

    item = models.CharField(max_length=50)
    is_paid = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.item}: {'paid' if self.is_paid else 'waiting'}"
