"""A name server that knows one name: resolver.py ADDRESS NAME IPV4. It answers over UDP until it is ended."""

import socket
import sys

address, name, ip = sys.argv[1:]
asked = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind((address, 53))
print("ready", flush=True)
while True:
    message, whom = one.recvfrom(512)
    question = message[12 : 12 + len(asked) + 4]
    known = question[:-4].lower() == asked
    # Type A: one address (RFC 1035). Of the name's other types there is nothing.
    records = known and question[-4:] == b"\0\1\0\1"
    record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(ip) if records else b""
    head = message[:2] + (b"\x81\x80" if known else b"\x81\x83") + b"\0\1\0" + bytes([len(record) > 0]) + bytes(4)
    one.sendto(head + question + record, whom)
