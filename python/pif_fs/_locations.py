"""Where records are: on which LFS, and at which host."""

from __future__ import annotations

import socket
from typing import NamedTuple

from ._library import ffi, lib, text_of


class Node(NamedTuple):
    """An LFS."""

    id: int
    name: str
    host: str
    state: str  # "up", "suspect", "down", "draining", "stale" or "failing"
    root: str  # its folder there
    bytes_total: int
    bytes_free: int


class Block(NamedTuple):
    """Consecutive bytes of a file that lie at the same hosts."""

    offset: int
    length: int
    hosts: list[str]


def nodes_of(pool) -> list[Node]:
    found: list[Node] = []

    def each(_user, node):
        host = text_of(node.host) or socket.gethostname()
        found.append(
            Node(
                node.id,
                text_of(node.name),
                host,
                text_of(node.state),
                text_of(node.root),
                node.bytes_total,
                node.bytes_free,
            )
        )
        return 0

    with pool.use() as c:
        c.checked(lib.pif_list_nodes(c.handle, c.callback("pif_node_function", each), ffi.NULL))
    return found


def node_ids(file) -> list[int]:
    """Of an open file, in the order of its LFSs."""
    count = file.call(lib.pif_nodes, ffi.NULL, 0)
    ids = ffi.new("uint32_t[]", count)
    file.call(lib.pif_nodes, ids, count)
    return list(ids)


def blocks_of(file, nodes, start: int, end: int | None) -> list[Block]:
    """Record n is on LFS n mod width. Neighbours at one host are one block."""
    length = file.record_length
    size = file.lengths()[1]
    end = size if end is None else min(end, size)
    host_of = {node.id: node.host for node in nodes}
    hosts = [host_of.get(node, "") for node in node_ids(file)]
    if length == 0 or len(set(hosts)) == 1:
        return [Block(start, end - start, sorted(set(hosts)))] if end > start else []
    blocks: list[Block] = []
    while start < end:
        host = hosts[start // length % len(hosts)]
        stop = min((start // length + 1) * length, end)
        if blocks and blocks[-1].hosts == [host]:
            blocks[-1] = blocks[-1]._replace(length=stop - blocks[-1].offset)
        else:
            blocks.append(Block(start, stop - start, [host]))
        start = stop
    return blocks
