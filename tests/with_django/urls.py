"""The addresses of the tests' project."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("ops/rota/", include("rota.django.urls")),
]
