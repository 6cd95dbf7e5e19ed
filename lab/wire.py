#!/usr/bin/env python3
"""One end of a wire for IP packets: a TUN device whose packets travel in UDP datagrams.

    wire.py DEVICE listen ADDRESS:PORT     answers whoever it last heard from
    wire.py DEVICE to ADDRESS:PORT

Between the two ends goes `marline link`, which makes the wire a link with a rate and a delay for whatever runs over
IP, the TCP of a tunnel's paths among it. Linux, root.
"""

import fcntl
import os
import selectors
import socket
import struct
import sys

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def main() -> None:
    if len(sys.argv) != 4 or sys.argv[2] not in ("listen", "to"):
        sys.exit(__doc__)
    device, mode, address = sys.argv[1:]
    host, port = address.rsplit(":", 1)
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    wire.setblocking(False)
    peer = None
    if mode == "listen":
        wire.bind((host, int(port)))
    else:
        peer = (host, int(port))
    both = selectors.DefaultSelector()
    both.register(tun, selectors.EVENT_READ)
    both.register(wire, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for ready, _ in both.select():
            try:
                while True:
                    if ready.fileobj is wire:
                        packet, peer = wire.recvfrom(65536)
                        os.write(tun, packet)
                    else:
                        packet = os.read(tun, 65536)
                        if peer:
                            wire.sendto(packet, peer)
            except BlockingIOError:
                pass
            except OSError as error:
                # A device that is not up yet, or a link that is not there yet: as lost as on any wire.
                print(error, file=sys.stderr)


main()
