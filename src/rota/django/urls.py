"""Lists the addresses of the dashboard: `path("rota/", include("rota.django.urls"))`."""

from django.urls import path

from rota.django.views import dashboard

app_name = "rota"
urlpatterns = [
    path("", dashboard, {"rest": ""}, name="dashboard"),
    path("<path:rest>", dashboard),
]
