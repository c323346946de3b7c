"""The proxy itself: what it says that it does to a link, it does."""

from __future__ import annotations

import socket
import socketserver
import threading

import pytest

from rota.testing.servers.proxy import Proxy


class Echo(socketserver.StreamRequestHandler):
    """Writes down each line, and says it again."""

    def handle(self):
        for line in self.rfile:
            self.server.heard.append(line)
            self.wfile.write(line)


@pytest.fixture
def echo():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        server.heard = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(echo):
    with Proxy(echo.server_address[1]) as proxy:
        yield proxy


@pytest.fixture
def connect(proxy):
    links = []

    def connect(patience=10.0):
        links.append(socket.create_connection(("127.0.0.1", proxy.port), timeout=patience))
        return links[-1]

    yield connect
    for link in links:
        link.close()


def ask(link, line):
    link.sendall(line)
    answer = link.recv(100)
    if not answer:
        raise ConnectionResetError
    return answer


def is_broken(link):
    with pytest.raises(ConnectionError):
        ask(link, b"anybody?\n")
    return True


def test_an_open_proxy_passes_everything_on(connect):
    assert ask(connect(), b"hello\n") == b"hello\n"


def test_a_cut_breaks_links_and_lets_new_ones_pass(proxy, connect):
    link = connect()
    ask(link, b"a\n")
    proxy.cut()
    assert is_broken(link)
    assert ask(connect(), b"b\n") == b"b\n"
    assert proxy.faults == 1


def test_refused_connections_are_broken_until_mended(proxy, connect):
    proxy.refuse_connections()
    assert is_broken(connect())
    proxy.mend()
    assert ask(connect(), b"b\n") == b"b\n"


def test_a_lost_reply_was_still_asked_for(proxy, connect, echo):
    link = connect(0.3)
    ask(link, b"a\n")
    proxy.lose_replies()
    with pytest.raises(TimeoutError):
        ask(link, b"b\n")
    assert echo.heard == [b"a\n", b"b\n"]
    proxy.mend()
    assert is_broken(link)


def test_a_black_hole_keeps_the_link_and_swallows_both_ways(proxy, connect, echo):
    link = connect(0.3)
    ask(link, b"a\n")
    proxy.black_hole()
    with pytest.raises(TimeoutError):
        ask(link, b"b\n")
    assert echo.heard == [b"a\n"]
    proxy.mend()
    assert is_broken(link)
    assert ask(connect(), b"c\n") == b"c\n"


def test_a_delay_holds_up_what_still_arrives(proxy, connect):
    link = connect(0.2)
    proxy.delay(0.5)
    with pytest.raises(TimeoutError):
        ask(link, b"a\n")
    link.settimeout(10)
    assert link.recv(100) == b"a\n"


def test_a_url_names_the_proxy_instead_of_the_server(proxy, echo):
    port = echo.server_address[1]
    assert proxy.in_front_of(f"redis://:secret@127.0.0.1:{port}/0") == f"redis://:secret@127.0.0.1:{proxy.port}/0"
