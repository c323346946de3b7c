"""The shop's pages, its admin, and the dashboard for those who may see it."""

from django.contrib import admin
from django.urls import include, path
from shop.views import orders

urlpatterns = [
    path("", orders),
    path("admin/", admin.site.urls),
    path("rota/", include("rota.django.urls")),
]
