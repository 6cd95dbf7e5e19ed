"""A router that announces a NAT64 translator (RFC 8781): router.py DEVICE PREFIX, a prefix of 96 bits, each half second.

It announces nothing else, and is no default router.
"""

import socket
import struct
import sys
import time

device, prefix = sys.argv[1:3]
# RFC 4861 section 4.2: type, code, checksum (the kernel's), hop limit, flags, no lifetime as a
# router, no times.
head = struct.pack("!BBHBBHII", 134, 0, 0, 0, 0, 0, 0, 0)
# Section 4 of RFC 8781: 1800 s, code 0.
option = struct.pack("!BBH", 38, 2, 1800) + socket.inet_pton(socket.AF_INET6, prefix)[:12]
one = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
# Others take it for forged.
one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(device))
print("ready", flush=True)
while True:
    try:
        one.sendto(head + option, ("ff02::1", 0, 0, socket.if_nametoindex(device)))
    except OSError:
        # It has no address yet.
        pass
    time.sleep(0.5)
