"""Rota: a schedule of every second, fired and run by one node, on any store."""

import os

from punctual import Ran, main

from rota import App, current_job, every


def start(ran: Ran, url: str) -> App:
    app = App(url, namespace=f"n{os.getpid()}")  # nobody waits for what an earlier trial left behind

    @app.schedule(every("1s"))
    def tick() -> None:
        ran(current_job.occurrence.timestamp())

    app.start()
    return app


if __name__ == "__main__":
    main(start)
