"""A node of an app with a rule, in a process of its own: `python alert_child.py URL NAMESPACE WEBHOOK [die]`.

With `die`, it kills itself when it has recorded the alert and has told nobody.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from rota import App, failpoints


def declare(app: App, webhook: str) -> None:
    app.alerts.webhook("ops", webhook, secret="0123456789abcdef")  # noqa: S106 - of nobody
    app.alerts.add("mail", when="no_worker", queue="mail", after="1s")


def die(name: str) -> None:
    if name == "alert.recorded" and is_raised():
        os.kill(os.getpid(), signal.SIGKILL)


def is_raised() -> bool:
    return bool(app.alerts.list(state="open").items)


if __name__ == "__main__":
    url, namespace, webhook, *rest = sys.argv[1:]
    app = App(url, namespace=namespace, name="shop")
    declare(app, webhook)
    if rest:
        failpoints.install(die)
    app.start(worker=False)
    threading.Event().wait()
