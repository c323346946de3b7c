"""One page: the orders, and a button for another one."""

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect
from django.utils.html import format_html, format_html_join

from shop.jobs import charge
from shop.models import Order


def orders(request: HttpRequest) -> HttpResponse:
    """Show the orders, or take one: the order and its job commit together."""
    if request.method == "POST":
        with transaction.atomic():
            order = Order.objects.create(item="chair")
            charge.using(tx=connection).enqueue(order.pk)
        return redirect("/")
    form = '<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="{}"><button>Buy</button></form>'
    rows = format_html_join("", "<li>{}</li>", ((str(order),) for order in Order.objects.order_by("-pk")[:50]))
    links = '<p><a href="/rota/">dashboard</a>, <a href="/admin/">admin</a></p>'
    return HttpResponse(format_html(f"<h1>Shop</h1>{form}<ul>{{}}</ul>{links}", get_token(request), rows))
