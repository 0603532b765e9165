"""`python nursery_client.py SOCKET WORD...`: the program, run by a nursery in this process's place.

It has this process's folder, environment and standard streams, gets its signals, dies with it, and ends it as it ended.
"""

import json
import os
import signal
import socket
import sys
import time

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WAIT_S = 240.0


def connected(path: str) -> socket.socket:
    """The nursery may still be importing."""
    deadline = time.monotonic() + WAIT_S
    while True:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(path)
            return line
        except OSError:
            line.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def main() -> int:
    line = connected(sys.argv[1])
    request = json.dumps({"words": sys.argv[2:], "folder": os.getcwd(), "env": dict(os.environ)}).encode()
    socket.send_fds(line, [len(request).to_bytes(8, "big")], [0, 1, 2])
    line.sendall(request)
    answers = line.makefile("r")
    pid = int(answers.readline())
    for number in SIGNALS:
        signal.signal(number, lambda number, _frame: os.kill(pid, number))
    code = int(answers.readline())
    if code < 0:
        if -code != signal.SIGKILL:  # Nobody may handle that one.
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
