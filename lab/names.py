#!/usr/bin/env python3
"""A name server that has one answer to every question: 192.0.2.53 and 2001:db8::53. To those about names below
`silent.example` it has none.

    names.py ADDRESS...     at port 53 of these addresses
"""

import selectors
import socket
import struct
import sys

SILENT = b"\x06silent\x07example\0"
ANSWERS = {1: socket.inet_pton(socket.AF_INET, "192.0.2.53"), 28: socket.inet_pton(socket.AF_INET6, "2001:db8::53")}


def answer(question: bytes) -> bytes:
    """RFC 1035 section 4: the question again, and one record that points to its name."""
    end = 12
    while question[end]:
        end += 1 + question[end]
    kind = struct.unpack_from("!H", question, end + 1)[0]
    asked = question[12 : end + 5]
    data = ANSWERS.get(kind, b"")
    head = question[:2] + struct.pack("!HHHHH", 0x8580, 1, 1 if data else 0, 0, 0)
    record = struct.pack("!HHHIH", 0xC00C, kind, 1, 60, len(data)) + data
    return head + asked + (record if data else b"")


def main() -> None:
    sockets = selectors.DefaultSelector()
    for address in sys.argv[1:] or sys.exit(__doc__):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        server = socket.socket(family, socket.SOCK_DGRAM)
        server.bind((address, 53))
        sockets.register(server, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for ready, _ in sockets.select():
            question, peer = ready.fileobj.recvfrom(4096)
            if SILENT not in question:
                ready.fileobj.sendto(answer(question), peer)


main()
