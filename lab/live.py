"""A live stream through a live entry: live.py send PORT SECONDS [MBPS], live.py receive PORT SECONDS [MBPS].

Both run on one machine, so that their clocks are one. 4 Mb/s, or as said, in datagrams of 1316 bytes, as MPEG-TS has,
which say when they were sent. The receiver prints as JSON the 50th and 99th percentile and the worst of the delays (ms), the longest
time without a datagram (ms), and what was lost.
"""

import json
import socket
import sys
import time

SIZE = 1316
mode, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
RATE = 1e6 * float(sys.argv[4] if len(sys.argv) > 4 else 4)
count = int(seconds * RATE / 8 / SIZE)
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

if mode == "send":
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number * SIZE * 8 / RATE - time.monotonic()))
        head = number.to_bytes(4, "big") + time.monotonic_ns().to_bytes(8, "big")
        one.sendto(head + bytes(SIZE - len(head)), ("127.0.0.1", port))
    sys.exit()

one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
one.bind(("127.0.0.1", port))
print("ready", file=sys.stderr, flush=True)
delays, seen, stall, last = [], set(), 0.0, None
end = time.monotonic() + 30
while time.monotonic() < end:
    # Longer than a link is dark.
    one.settimeout(3.5 if seen else 20.0)
    try:
        data = one.recv(65536)
    except TimeoutError:
        break
    now = time.monotonic_ns()
    if last is not None:
        stall = max(stall, (now - last) / 1e6)
    last = now
    seen.add(int.from_bytes(data[:4], "big"))
    delays.append((now - int.from_bytes(data[4:12], "big")) / 1e6)
delays.sort()


def quantile(share):
    return round(delays[min(len(delays) - 1, int(share * len(delays)))], 1) if delays else None


print(
    json.dumps(
        {
            "p50": quantile(0.5),
            "p99": quantile(0.99),
            "worst": quantile(1.0),
            "stall": round(stall, 1),
            "lost": count - len(seen),
            "sent": count,
        }
    )
)
