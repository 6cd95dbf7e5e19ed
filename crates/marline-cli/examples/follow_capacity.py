#!/usr/bin/env python3
"""Keeps an encoder's bit rate at what the links carry, beside `marline client --live ...`.

    follow_capacity.py --best 10000 --worst 500 [--name cam2] [--control SOCKET]

It asks `marline status --json` again and again, chooses the bit rate, and says it to two: to the encoder (here it is
only printed; put your encoder's own command into `tell_encoder`) and to Marline, by `marline live target`, which
watches over what it was told. All rates are in kb/s. Needs nothing but Python 3.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time

# So much of what the links carry is used: a queue that has formed must drain, too.
SHARE = 0.9
# So much more is tried when all is well.
STEP = 1.05


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--best", type=int, required=True, help="what the encoder makes at most, kb/s")
    parser.add_argument("--worst", type=int, default=500, help="and at least")
    parser.add_argument("--name", default="live", help="of the live entry")
    parser.add_argument("--control", help="control socket of the client, if not the usual one")
    parser.add_argument("--marline", default="marline", help="the program")
    parser.add_argument("--every", type=float, default=0.5, help="seconds between two looks")
    parser.add_argument("--calm", type=float, default=2, help="quiet seconds before more is tried")
    return parser.parse_args()


def run_marline(given: argparse.Namespace, *words: str) -> str | None:
    """What the program prints; None when it fails, as it does while the client is not there."""
    control = ["--control", given.control] if given.control else []
    result = subprocess.run([given.marline, *words, *control], stdout=subprocess.PIPE, check=False)
    return result.stdout.decode() if result.returncode == 0 else None


def entry(given: argparse.Namespace) -> dict | None:
    """The status of the live entry."""
    status = run_marline(given, "status", "--json")
    entries = json.loads(status)["live"] if status else []
    return next((one for one in entries if one["name"] == given.name), None)


def tell_encoder(rate: int) -> None:
    print(f"encoder: {rate} kb/s", flush=True)


def main() -> None:
    given = options()
    rate = given.best
    tell_encoder(rate)
    # Since when nothing was wrong.
    calm = time.monotonic()
    while True:
        now = entry(given)
        if now:
            # Only there while the links carry less than the target.
            capacity = now["capacity_bps"]
            wanted = rate
            if capacity is not None:
                wanted = max(given.worst, min(rate, int(capacity / 1000 * SHARE)))
                calm = time.monotonic()
            elif time.monotonic() - calm >= given.calm:
                wanted = min(given.best, int(rate * STEP) + 1)
                calm = time.monotonic()
            if wanted != rate:
                rate = wanted
                tell_encoder(rate)
            # Also at the beginning, and when the client was started anew.
            if now["target_bps"] != rate * 1000:
                run_marline(given, "live", "target", f"{rate}kbit", "--name", given.name)
        time.sleep(given.every)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
