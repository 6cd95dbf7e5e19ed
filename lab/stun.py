#!/usr/bin/env python3
"""A STUN server, and a client that asks through a SOCKS5 proxy (RFC 8489, RFC 1928).

    stun.py serve ADDRESS...                  at port 3478 of these addresses
    stun.py ask PROXY SERVER SERVER           one association, both servers: prints the mapped address if both
                                              saw the same (endpoint-independent mapping, RFC 4787)
"""

import os
import select
import socket
import struct
import sys

COOKIE = 0x2112A442


def answer(request: bytes, whom: tuple[str, int]) -> bytes:
    """A binding response with XOR-MAPPED-ADDRESS."""
    port = whom[1] ^ (COOKIE >> 16)
    ip = struct.unpack("!I", socket.inet_aton(whom[0]))[0] ^ COOKIE
    value = struct.pack("!HHBBHI", 0x0020, 8, 0, 1, port, ip)
    return struct.pack("!HHI", 0x0101, len(value), COOKIE) + request[8:20] + value


def serve(addresses: list[str]) -> None:
    sockets = []
    for address in addresses:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind((address, 3478))
        sockets.append(one)
    print("ready", flush=True)
    while True:
        for ready in select.select(sockets, [], [])[0]:
            request, whom = ready.recvfrom(2048)
            if len(request) >= 20 and request[:2] == b"\0\1":
                ready.sendto(answer(request, whom), whom)


def mapped(relay: socket.socket, server: str) -> str:
    """Where this server sees the association."""
    request = struct.pack("!HHI", 1, 0, COOKIE) + os.urandom(12)
    header = b"\0\0\0\1" + socket.inet_aton(server) + struct.pack("!H", 3478)
    for _ in range(5):
        relay.send(header + request)
        try:
            response = relay.recv(2048)[10:]
        except socket.timeout:
            continue
        if response[8:20] == request[8:20]:
            port, ip = struct.unpack_from("!HI", response, 26)
            return f"{socket.inet_ntoa(struct.pack('!I', ip ^ COOKIE))}:{port ^ (COOKIE >> 16)}"
    sys.exit(f"no answer of {server}")


def ask(proxy: str, servers: list[str]) -> None:
    host, port = proxy.split(":")
    control = socket.create_connection((host, int(port)), timeout=5)
    control.sendall(b"\5\1\0")
    assert control.recv(2) == b"\5\0", "the proxy wants a password"
    control.sendall(b"\5\3\0\1" + bytes(6))
    reply = control.recv(10)
    assert reply[1] == 0, f"the proxy refuses an association: {reply[1]}"
    relay = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    relay.settimeout(1)
    relay.connect((socket.inet_ntoa(reply[4:8]), struct.unpack("!H", reply[8:10])[0]))
    seen = [mapped(relay, server) for server in servers]
    if len(set(seen)) != 1:
        sys.exit(f"each server sees another address: {seen}")
    print(seen[0])


if sys.argv[1:2] == ["serve"]:
    serve(sys.argv[2:])
elif sys.argv[1:2] == ["ask"] and len(sys.argv) > 3:
    ask(sys.argv[2], sys.argv[3:])
else:
    sys.exit(__doc__)
