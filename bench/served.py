"""A web process for the benchmark: the HTTP API of an app on a store, which says where it is and what CPU it has used.

`python -m bench.served URL NAMESPACE TOKEN`: it prints its port, then its CPU seconds for every line that it is sent.
"""

import sys
from time import process_time

from rota import App
from rota.web.server import WebServer


def main(url: str, namespace: str, token: str) -> None:
    app = App(url, namespace=namespace)
    app.task(name="noop")(lambda: None)
    app.open()
    server = WebServer(app, port=0, token=token).start()
    print(server.port, flush=True)
    for _ in sys.stdin:
        print(process_time(), flush=True)
    server.stop()
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
