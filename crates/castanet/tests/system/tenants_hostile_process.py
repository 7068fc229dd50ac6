"""Answers the parent in the place of a tenant's process, which is stopped, as a hostile one could.

Arguments: the process. Its socket for calls is that of packets; that, and the one by which it tells its state, are
duplicated here (pidfd_getfd). The name of the handler in a request says how it is answered."""

import ctypes
import json
import os
import socket
import struct
import sys
import time

PIDFD_GETFD = 438
PIECE = 16 << 10

libc = ctypes.CDLL(None, use_errno=True)


def duplicate(process, number):
    fd = libc.syscall(PIDFD_GETFD, process, number, 0)
    if fd < 0:
        sys.exit(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
    return fd


def call_socket(pid, process):
    for name in os.listdir(f"/proc/{pid}/fd"):
        fd = duplicate(process, int(name))
        try:
            it = socket.socket(fileno=fd)
        except OSError:
            os.close(fd)
            continue
        if it.type == socket.SOCK_SEQPACKET:
            return it
    sys.exit("the process has no socket of packets")


def answer(number, data, last=1):
    while len(data) > PIECE:
        calls.send(struct.pack("<QB", number, 0) + data[:PIECE])
        data = data[PIECE:]
    calls.send(struct.pack("<QB", number, last) + data)


def value(text):
    return b"200 OK\r\nDATA %d\r\n" % len(text) + text


def totals(name):
    return {
        "name": name,
        "class": "Invented\x1b[2J",
        "argument": "\x1b[2J" * 1000,
        "is_end": True,
        "packets": 2**64 - 1,
        "input": 2**64 - 1,
        "output": 2**64 - 1,
        "drops": {f"{n}\x1b[2J": 2**64 - 1 for n in range(1000)},
        "sample": None,
        "queue": {"length": 2**64 - 1, "capacity": 0},
        "kernel_drops": 2**64 - 1,
    }


def drop(element):
    return {
        "element": element,
        "class": "Counter",
        "reason": "a\x1b[2J",
        "packets": 2**64 - 1,
        "meaning": "\x1b[2J call 555-0100",
        "example": {"time": -(2**63), "length": 2**64 - 1, "text": "\x1b[2J" * 100},
    }


# Of an element of the tenant, and of such that others have or nobody has.
NAMES = ["pings", "invented", "process", "../blue/pings", "/blue/pings", "blue/pings", "", "red/pings"]
SNAPSHOT = {"time": -(2**63), "workers": [{"cpu": 2**64 - 1}] * 100, "elements": [totals(n) for n in NAMES * 2]}
DROPS = [drop(name) for name in NAMES * 100]

pid = int(sys.argv[1])
process = os.pidfd_open(pid)
calls = call_socket(pid, process)
state = socket.socket(fileno=duplicate(process, 0))
print("answers", flush=True)
late = []
report = "x.short"
while True:
    packet = calls.recv(1 << 17)
    number = struct.unpack("<Q", packet[:8])[0]
    command, name = packet[9:].decode().split()[:2]
    match name:
        case "x.garbage":
            answer(number, bytes(range(256)) * 4)
        case "x.packets":
            for length in range(1, 9):
                calls.send(b"\xff" * length)
            answer(number, value(b"kept"))
        case "x.endless":
            for _ in range(70):
                answer(number, b"x" * PIECE, 0)
        case "x.promise":
            answer(number, b"200 OK\r\nDATA 1000000000\r\nx")
        case "x.escape":
            answer(number, value(b"a\x1b[2J\nb"))
        case "x.reason":
            answer(number, b"590-\x1b[2J\r\n590 bad\r\n")
        case "x.twice":
            answer(number, value(b"one"))
            answer(number, value(b"two"))
        case "x.early":
            for other in range(number + 1, number + 20):
                answer(other, value(b"early"))
            answer(number, value(b"own"))
        case "x.late":
            late.append(number)
        case "x.long" | "x.refusal" | "x.short":
            report = name
            answer(number, value(b""))
        case "snapshot" if report == "x.refusal":
            answer(number, b"590-Too long\r\n590 the answer has %d bytes\r\n" % time.monotonic_ns())
        case "snapshot" if report == "x.long":
            answer(number, value(b"[" + b" " * (1 << 20) + b"]"))
        case "snapshot":
            answer(number, value(json.dumps(SNAPSHOT).encode()))
        case "drop_report":
            answer(number, value(json.dumps(DROPS).encode()))
        case "x.flood":
            end = time.monotonic() + 3
            while time.monotonic() < end:
                answer(1 << 60, b"x" * PIECE)
        case "x.state":
            count = 0
            try:
                while count < 1 << 24:
                    state.sendall(b"running flood %d\npid 1\nalive\nrefused flood\nflood\n\n" % count)
                    count += 1
            except OSError as error:
                sys.exit(f"{count} floods: {error}")
        case _:
            for other in late:
                answer(other, value(b"late"))
            late = []
            answer(number, value(name.encode()))
