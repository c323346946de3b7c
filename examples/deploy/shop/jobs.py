"""The jobs of a shop: what the manifests beside this folder run."""

from __future__ import annotations

from rota import App, cron

app = App(name="shop", version="1.0")  # ROTA_STORE names the store


@app.task(retries=3, timeout="20s")
def send_receipt(order: int) -> str:
    return f"receipt of order {order}"


@app.schedule(cron("0 6 * * *", tz="Europe/Berlin"), description="The morning report")
def report() -> None: ...
