"""Round trips are counted by who speaks after whom, between the marks that a trial sets."""

import io
import socket

import pytest
from bench.trips import Counter, CountingProxy, listen


def test_what_is_pipelined_is_one_trip():
    counter = Counter()
    for word in ("ask", "ask", "answer", "answer", "ask", "answer"):
        getattr(counter, word)()
    assert counter.trips == 2


def test_trips_are_counted_between_marks():
    counts = iter([5, 25, 30, 40])
    told = ["enqueue\n", "enqueue\n", "drain\n", "drain\n", '{"enqueue": 20, "drain": 1000}\n']
    leave = io.StringIO()
    assert listen(told, leave, lambda: next(counts)) == {"enqueue": 1.0, "drain": 0.01}
    assert leave.getvalue() == "\n" * 4


def test_a_trial_that_ends_early_says_nothing_of_trips():
    with pytest.raises(EOFError):
        listen(["enqueue\n"], io.StringIO(), lambda: 0)


def test_a_link_through_the_proxy_is_counted():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        CountingProxy(server.getsockname()[1]) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port)) as client,
        server.accept()[0] as served,
    ):
        for _ in range(3):
            client.sendall(b"ping")
            assert served.recv(4) == b"ping"
            served.sendall(b"pong")
            assert client.recv(4) == b"pong"
        assert proxy.trips == 3
