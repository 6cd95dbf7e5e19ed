"""A captive portal: whatever comes to ADDRESS, by UDP or TCP at port 4433, is answered, and not by the server.

answerer.py ADDRESS. The address need not be this host's: the kernel must bring here what is for it. UDP gets as many
bytes as it sent, of which only the first are as QUIC's; TCP gets a page that sends on to another, whatever it says.
"""

import socket
import sys
import threading

# linux/in.h, linux/in6.h: bound to, and sends from, an address that is not this host's.
IP_TRANSPARENT, IPV6_TRANSPARENT = 19, 75
PAGE = b"HTTP/1.1 302 Found\r\nLocation: http://portal.example/\r\nContent-Length: 0\r\n\r\n"
address = sys.argv[1]
family = socket.AF_INET6 if ":" in address else socket.AF_INET


def bound(kind):
    one = socket.socket(family, kind)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
    else:
        one.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
    one.bind((address, 4433))
    return one


def web(listener):
    while True:
        try:
            one = listener.accept()[0]
            one.settimeout(5)
            one.recv(4096)
            one.sendall(PAGE)
            print("a page", flush=True)
            one.close()
        except OSError:
            pass


listener = bound(socket.SOCK_STREAM)
listener.listen(64)
threading.Thread(target=web, args=(listener,), daemon=True).start()
datagrams = bound(socket.SOCK_DGRAM)
print("ready", flush=True)
while True:
    data, whence = datagrams.recvfrom(65536)
    datagrams.sendto(data[:1] + bytes(len(data) - 1), whence)
    print("a datagram", flush=True)
