"""One table."""

from django.db import models


class Order(models.Model):
    """What a customer bought."""

    name = models.CharField(max_length=100)

    class Meta:
        app_label = "shop"

    def __str__(self) -> str:
        return self.name
