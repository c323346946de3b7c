"""The app of Rota that takes over from `beat_site`: a task of the same name, which records each run with its time."""

from __future__ import annotations

import os

import psycopg

from rota import App, current_job

app = App(os.environ["ROTA_SITE_STORE"], namespace=os.environ["ROTA_SITE_NAMESPACE"], name="rota_site")


@app.task(name="shop.tick")
def tick(name: str) -> None:
    with psycopg.connect(os.environ["BEAT_DATABASE"], autocommit=True) as connection:
        connection.execute(
            "INSERT INTO runs (system, name, key, at) VALUES ('rota', %s, %s, clock_timestamp()) "
            "ON CONFLICT (system, name, key) DO UPDATE SET deliveries = runs.deliveries + 1",
            [name, str(current_job.occurrence)],
        )
