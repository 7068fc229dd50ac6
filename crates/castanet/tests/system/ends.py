"""Both sides of a middlebox that bridges, for scripts that run on one of them.

usage: SCRIPT PROGRAM SOCKET NAMESPACE-OF-THE-OTHER-SIDE
"""

import ctypes
import os
import socket
import subprocess
import sys

PROGRAM, SOCKET, OTHER = sys.argv[1:4]
LIBC = ctypes.CDLL(None, use_errno=True)
HERE = os.open("/proc/self/ns/net", os.O_RDONLY)
THERE = os.open(OTHER, os.O_RDONLY)
FAILED = []


def on_the_other_side(make):
    """What `make` makes there; this thread comes back."""
    assert LIBC.setns(THERE, 0) == 0, os.strerror(ctypes.get_errno())
    try:
        return make()
    finally:
        assert LIBC.setns(HERE, 0) == 0, os.strerror(ctypes.get_errno())


def tap(name):
    """A socket for all frames of an interface."""
    every = 3
    it = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(every))
    it.bind((name, every))
    return it


LEFT = tap("left")
RIGHT = on_the_other_side(lambda: tap("right"))


def command(*words):
    """Gives the middlebox a command; what it answers."""
    ran = subprocess.run(
        [PROGRAM, "middlebox", "--connect", SOCKET, *words], capture_output=True, text=True
    )
    if ran.returncode != 0:
        FAILED.append(f"{words}: {ran.stderr}")
    return ran.stdout


def finish(kind, count):
    """Says what failed, or how many were right, and exits."""
    print("\n\n".join(FAILED) if FAILED else f"all {count} {kind} are right")
    sys.exit(1 if FAILED else 0)
