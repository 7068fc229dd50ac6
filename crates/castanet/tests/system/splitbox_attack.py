"""An attacker that hears all datagrams of the cloud, and sends any.

usage: PORT ADDRESS…

Listens until a line comes on the standard input. Then it sends datagrams that no party may accept to
each address, and prints how many; at the next line it floods the parties.
"""

import random
import select
import socket
import struct
import sys
import time

PORT, ADDRESSES = int(sys.argv[1]), sys.argv[2:]
OUT = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
HEADER = 24


def listen():
    """By destination and kind: up to 20 datagrams."""
    every, packet, membership, promiscuous = 3, 263, 1, 1
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(every))
    tap.bind(("eth0", every))
    index = socket.if_nametoindex("eth0")
    tap.setsockopt(packet, membership, struct.pack("iHH8s", index, promiscuous, 0, b""))
    print("listening")
    heard = {}
    while True:
        for ready in select.select([tap, sys.stdin], [], [])[0]:
            if ready is sys.stdin:
                sys.stdin.readline()
                return heard
            frame = tap.recv(65535)
            ip = frame[14:]
            if frame[12:14] != b"\x08\x00" or ip[9] != 17 or ip[6:8] not in (b"\x40\0", b"\0\0"):
                continue
            head = 4 * (ip[0] & 15)
            port, length = struct.unpack("!HH", ip[head + 2 : head + 6])
            if port == PORT:
                data = ip[head + 8 : head + length]
                of = heard.setdefault((socket.inet_ntoa(ip[16:20]), data[1]), [])
                of.append(data) if len(of) < 20 else None


def changed(data, at):
    """With one bit flipped in a byte."""
    bit = 1 << random.randrange(8)
    return data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]


def attacks(heard, address):
    """Replayed, changed, cut, foreign, random and long datagrams."""
    for (to, _), datagrams in heard.items():
        if to != address:
            yield from datagrams[:5]
            continue
        yield from datagrams
        yield from datagrams
        for data in datagrams[:5]:
            places = [*range(HEADER), *random.sample(range(HEADER, len(data)), 5), len(data) - 1]
            yield from (changed(data, at) for at in places)
            yield from (data[:length] for length in (1, 2, HEADER - 1, HEADER, HEADER + 15, len(data) - 1))
            yield data + b"\0"
            # Of a processor that there is not, and more than there may be.
            yield from (data[:2] + bytes([of]) + data[3:] for of in (63, 64, 255))
    for _ in range(100):
        yield random.randbytes(random.randrange(1, 1400))
        # With a version and a kind that there is.
        yield bytes([1, random.randrange(1, 8)]) + random.randbytes(random.randrange(1, 1400))
    yield random.randbytes(5000)


HEARD = listen()
for address in ADDRESSES:
    count = 0
    for data in attacks(HEARD, address):
        OUT.sendto(data, (address, PORT))
        count += 1
        time.sleep(0.0003)
    print("attacked", address, count)
# No datagram has no bytes, and an empty one is not the end of anything.
for address in ADDRESSES:
    OUT.sendto(b"", (address, PORT))
print("kinds", *sorted({kind for _, kind in HEARD}))
sys.stdin.readline()
POOL = [it for of in HEARD.values() for it in of]
for _ in range(20000):
    data = random.choice(POOL)
    for address in ADDRESSES:
        OUT.sendto(changed(data, random.randrange(len(data))), (address, PORT))
print("flooded")
