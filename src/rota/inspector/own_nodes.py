"""Finds the nodes of this container or host and asks each of them whether it works; the store is not read.

Every node listens on a socket in Linux's abstract namespace, whose name holds the node's id. Such a socket needs no
file system and no port, and the kernel removes it with its process, so none is left of an earlier container with the
same host name. A client receives one JSON object when it connects. A frozen node accepts no connection, so it is
silent.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import Struct

from rota.inspector.health import OK, Health, HealthFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "rota-node:"
ANSWER_WITHIN = 5.0  # seconds
LONGEST_ANSWER = 1 << 16  # bytes
IS_SUPPORTED = sys.platform == "linux"

_CREDENTIALS = struct.Struct("3i")  # pid, uid and gid of a peer
_LISTENS = 0x10000  # a flag in /proc/net/unix
_STOPPED = {"T": "is stopped by a signal", "t": "is stopped by a debugger"}


class NodeAnswer(Struct, kw_only=True):
    """A node's report about itself."""

    roles: tuple[str, ...]
    state: Literal["ok", "draining", "stuck"]
    stuck: tuple[str, ...] = ()  # the services whose loops are not running


class OwnNodeFacts(Struct, kw_only=True):
    """A node of this container or host, and "ok", "draining", or its problem."""

    id: str
    pid: int
    roles: tuple[str, ...]
    state: str

    @property
    def is_well(self) -> bool:
        return self.state in {OK, "draining"}


class OwnHealthFacts(HealthFacts, kw_only=True):
    """The health of the nodes of this container or host."""

    reason: str
    nodes: list[OwnNodeFacts]


class OwnFinding(Health, frozen=True, kw_only=True):
    """The result for each node, and the reason in words."""

    reason: str
    nodes: list[OwnNodeFacts]

    @property
    def facts(self) -> OwnHealthFacts:
        same = super().facts
        return OwnHealthFacts(status=same.status, checks=same.checks, reason=self.reason, nodes=self.nodes)


def check_own_nodes(parent: int | None = None, *, within: float = ANSWER_WITHIN) -> OwnFinding:
    """Ask all nodes here, or only those that are the process `parent` or its children."""
    nodes = own_nodes(parent, within=within)
    if not nodes:
        where = "here" if parent is None else f"in process {parent} or its children"
        reason = f"no node runs {where}; `rota run TARGET` starts one"
        return OwnFinding(checks={"nodes": "none runs here"}, reason=reason, nodes=[])
    wrong = [f"node {node.id} {node.state}" for node in nodes if not node.is_well]
    number = "1 node answers" if len(nodes) == 1 else f"all {len(nodes)} nodes answer"
    return OwnFinding(
        checks={"nodes": " and ".join(wrong) or OK},
        reason=" and ".join(wrong) or f"{number}: {', '.join(node.id for node in nodes)}",
        nodes=nodes,
    )


def own_nodes(parent: int | None = None, *, within: float = ANSWER_WITHIN) -> list[OwnNodeFacts]:
    """The nodes of this user in this container; root sees those of all users."""
    ends_at = time.monotonic() + within
    found = [_connect(node_id, inode) for node_id, inode in sorted(_listening())]
    asked = [one for one in found if one is not None]
    try:
        own = [one for one in asked if _is_here(one) and (parent is None or parent in (one.pid, _parent_of(one.pid)))]
        return [_facts(one, ends_at, within) for one in own]
    finally:
        for one in asked:
            one.connection.close()


def is_trusted(connection: socket.socket) -> bool:
    """Whether the other side is this user or root."""
    return _peer(connection)[1] in {os.geteuid(), 0}


class _Asked(NamedTuple):
    """A node that is asked."""

    id: str
    connection: socket.socket
    pid: int
    uid: int
    is_full: bool  # so many clients ask it already that it accepts no further connection


def _listening() -> Iterator[tuple[str, str]]:
    """The ids of nodes in this network namespace, and the inodes of their sockets."""
    try:
        lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines[1:]:
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and fields[7].startswith(f"@{PREFIX}") and _flags(fields[3]) & _LISTENS:
            yield fields[7][1 + len(PREFIX) :], fields[6]


def _flags(text: str) -> int:
    """The name of a socket of any user may hold a line break, and the text after it is no line of the kernel's."""
    try:
        return int(text, 16)
    except ValueError:
        return 0


def _connect(node_id: str, inode: str) -> _Asked | None:
    """The connection to a node; None: it has ended meanwhile."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)  # noqa: FBT003
    is_full = False
    try:
        connection.connect(f"\0{PREFIX}{node_id}")
    except BlockingIOError:
        is_full = True
    except OSError:
        connection.close()
        return None
    pid, uid = (_owner(node_id, inode), os.geteuid()) if is_full else _peer(connection)
    return _Asked(node_id, connection, pid, uid, is_full)


def _peer(connection: socket.socket) -> tuple[int, int]:
    """The pid and the user of the other side; a process of another container has the pid 0."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return pid, uid


def _owner(node_id: str, inode: str) -> int:
    """The process of this container that has this socket open; 0 if it is in another one."""
    pid = _pid_in(node_id)
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0
    return pid if any(_target(link) == f"socket:[{inode}]" for link in links) else 0


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""  # closed meanwhile


def _pid_in(node_id: str) -> int:
    """The pid that a node's id holds: host-pid-random."""
    parts = node_id.rsplit("-", 2)
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else 0


def _is_here(one: _Asked) -> bool:
    """Containers may share a network, and so these names. A node of another one has no pid here, or several."""
    if os.geteuid() not in {0, one.uid}:
        return False
    pids = _status(one.pid).get("NSpid", "").split()
    return len(pids) == len(_status(os.getpid()).get("NSpid", "").split()) and pids[-1:] == [str(_pid_in(one.id))]


def _facts(one: _Asked, ends_at: float, within: float) -> OwnNodeFacts:
    stopped = _STOPPED.get(_status(one.pid).get("State", "")[:1])
    answer = None if stopped or one.is_full else _answer(one.connection, ends_at)
    if answer is None:
        state = stopped or f"did not answer within {within:g} s"
        return OwnNodeFacts(id=one.id, pid=one.pid, roles=(), state=state)
    state = f"is stuck in its {' and '.join(answer.stuck)}" if answer.state == "stuck" else answer.state
    return OwnNodeFacts(id=one.id, pid=one.pid, roles=answer.roles, state=state)


def _answer(connection: socket.socket, ends_at: float) -> NodeAnswer | None:
    received = b""
    while len(received) < LONGEST_ANSWER:
        connection.settimeout(max(0.0, ends_at - time.monotonic()))
        try:
            part = connection.recv(LONGEST_ANSWER)
        except OSError:
            return None
        if not part:
            break
        received += part
    try:
        return msgspec.json.decode(received, type=NodeAnswer)
    except msgspec.DecodeError:
        return None


def _parent_of(pid: int) -> int:
    return int(_status(pid).get("PPid", "0"))


def _status(pid: int) -> dict[str, str]:
    """The kernel's status of a process; empty if it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
