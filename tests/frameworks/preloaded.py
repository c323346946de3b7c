"""A WSGI site that has used an app on every store before gunicorn forks: its workers enqueue, and say who they are."""

from __future__ import annotations

import json
import os

from rota import App

apps = [App(place["url"], namespace=place["namespace"]) for place in json.loads(os.environ["PLACES"])]
tasks = [app.task(len, name="count") for app in apps]
for task in tasks:
    task.enqueue("before the fork")


def site(environ, start_response):
    word = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()
    jobs = [task.enqueue(word) for task in tasks]
    answer = {"pid": os.getpid(), "states": [job.state for job in jobs]}
    body = json.dumps(answer).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
