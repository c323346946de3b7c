"""A task that keeps collections in sync; which ones and when stands in rota.yaml beside it."""

from rota import App

app = App(name="collections")


@app.task(name="jobs.sync")
def sync(source: str, collection: str) -> None:
    """Bring one collection up to date."""
    print(f"reading {collection} of {source}")  # becomes a line of the task's log
