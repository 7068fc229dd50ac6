"""Numbered datagrams of many lengths.

usage: send ADDRESS PORT RATE      until a line comes on the standard input; prints how many
       receive ADDRESS PORT        answers each line with counts: different, wrong, doubled, missing
"""

import random
import select
import socket
import sys
import time

MODE, ADDRESS, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])


def payload(number):
    """The bytes of a datagram; those of many fill a link of 1500 bytes."""
    rest = random.Random(number)
    return number.to_bytes(8, "big") + rest.randbytes(rest.choice([0, 1, 99, 700, 1464]))


def send(rate):
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    began, number = time.monotonic(), 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        due = int((time.monotonic() - began) * rate)
        # After a pause it does not send all that is due at once.
        for _ in range(min(due - number, 20)):
            out.sendto(payload(number), (ADDRESS, PORT))
            number += 1
        if due - number > 20:
            began = time.monotonic() - number / rate
        time.sleep(0.001)
    print(number)


def receive():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    sock.bind((ADDRESS, PORT))
    seen, wrong, doubled, questions = set(), 0, 0, 0
    print("ready")
    while True:
        for ready in select.select([sock, sys.stdin], [], [])[0]:
            if ready is sock:
                data = sock.recv(65535)
                number = int.from_bytes(data[:8], "big")
                if data != payload(number):
                    wrong += 1
                elif number in seen:
                    doubled += 1
                seen.add(number)
                continue
            if not sys.stdin.readline():
                return
            questions += 1
            missing = max(seen) + 1 - len(seen) if seen else 0
            print("answer", questions, len(seen), wrong, doubled, missing)


send(int(sys.argv[4])) if MODE == "send" else receive()
