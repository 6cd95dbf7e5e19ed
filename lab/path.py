"""What an end's status says of a path: path.py SOCKET PATH FIELD [WANTED BEGAN MOST].

A server names its paths by the client's address and port: `10.201.1.2:` is the one from there, whatever its port.

With WANTED, a regular expression, waits for it and says how many seconds after BEGAN (since 1970) that was; fails when
it is more than MOST. Asks the control socket itself, every 10 ms: a `marline status` each would take longer than what
is measured.
"""

import json
import re
import socket
import sys
import time

place, name, field = sys.argv[1:4]


def is_prefix(whole):
    return name.endswith(":") and whole.startswith(name)


def ask():
    """The field now; "silent" where nobody answers, "none" without such a path."""
    try:
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(5)
            control.connect(place)
            control.sendall(b'{"version":1,"request":"status"}\n')
            answer = json.loads(control.makefile().readline())
    except (OSError, ValueError):
        return "silent"
    paths = [path for session in answer["status"]["sessions"] for path in session["paths"]]
    return next((str(path[field]) for path in paths if path["name"] == name or is_prefix(path["name"])), "none")


if len(sys.argv) == 4:
    print(ask())
    sys.exit()
wanted, began, most = sys.argv[4], float(sys.argv[5]), float(sys.argv[6])
while not re.fullmatch(wanted, ask()):
    if time.time() > began + most + 8:
        print(f"{name} is {ask()}, not {wanted}")
        sys.exit(1)
    time.sleep(0.01)
took = time.time() - began
print(f"{took:.2f} s (at most {most:g})")
sys.exit(took > most)
