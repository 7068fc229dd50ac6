#!/usr/bin/env python3
"""Writes sample.pcap: packets of three hosts on three networks to and through conf/router.click.

    python3 conf/make-sample.py conf/sample.pcap

Uses nothing but the standard library, and writes the same bytes each time.
"""

import struct
import sys

ARP, IPV4 = 0x0806, 0x0800
ICMP, TCP, UDP = 1, 6, 17
DF, MF = 0x4000, 0x2000
START = 1_700_000_000  # the first frame's second


def mac(network, host):
    return bytes([2, 0, 0, 0, network, host])


def ip(text):
    return bytes(int(part) for part in text.split("."))


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(source, destination, kind, payload):
    return (destination + source + struct.pack("!H", kind) + payload).ljust(60, b"\0")


def arp(operation, sender_mac, sender, target_mac, target):
    return struct.pack("!HHBBH", 1, IPV4, 6, 4, operation) + sender_mac + ip(sender) + target_mac + ip(target)


def ipv4(source, destination, protocol, payload, ttl=64, ident=0, flags=0, offset=0, options=b"", bad_sum=False):
    options = options.ljust(-(-len(options) // 4) * 4, b"\0")
    length = 20 + len(options)
    head = struct.pack("!BBHHHBBH", 0x40 | length // 4, 0, length + len(payload), ident,
                       flags | offset // 8, ttl, protocol, 0) + ip(source) + ip(destination) + options
    total = checksum(head) ^ (0x5555 if bad_sum else 0)
    return head[:10] + struct.pack("!H", total) + head[12:] + payload


def with_pseudo_header(source, destination, protocol, segment, at):
    pseudo = ip(source) + ip(destination) + struct.pack("!BBH", 0, protocol, len(segment))
    total = checksum(pseudo + segment) or 0xFFFF
    return segment[:at] + struct.pack("!H", total) + segment[at + 2:]


def udp(source, destination, sport, dport, data):
    segment = struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data
    return with_pseudo_header(source, destination, UDP, segment, 6)


def tcp(source, destination, sport, dport, seq, ack, flags, data=b""):
    segment = struct.pack("!HHIIBBHHH", sport, dport, seq, ack, 0x50, flags, 64240, 0, 0) + data
    return with_pseudo_header(source, destination, TCP, segment, 16)


def echo(kind, ident, sequence, size=56):
    data = bytes(i & 0xFF for i in range(size))
    head = struct.pack("!BBHHH", kind, 0, 0, ident, sequence)
    return struct.pack("!BBHHH", kind, 0, checksum(head + data), ident, sequence) + data


def host(network):
    return f"10.0.{network}.2"


def gateway(network):
    return f"10.0.{network}.1"


def to_router(network, packet):
    return ethernet(mac(network, 2), mac(network, 1), IPV4, packet)


def neighbours():
    """Each host sends an ARP request for the router's address, then answers the router's request."""
    for n in (1, 2, 3):
        yield ethernet(mac(n, 2), b"\xff" * 6, ARP, arp(1, mac(n, 2), host(n), bytes(6), gateway(n)))
        yield ethernet(mac(n, 2), mac(n, 1), ARP, arp(2, mac(n, 2), host(n), mac(n, 1), gateway(n)))


def pings():
    """Every host pings every other host and the router, and gets replies from the hosts."""
    for n in (1, 2, 3):
        yield to_router(n, ipv4(host(n), gateway(n), ICMP, echo(8, n, 0), ident=n, flags=DF))
        for m in (1, 2, 3):
            if m != n:
                yield to_router(n, ipv4(host(n), host(m), ICMP, echo(8, n, m), ident=100 * n + m, flags=DF))
                yield to_router(m, ipv4(host(m), host(n), ICMP, echo(0, n, m), ident=500 * n + m))


def questions():
    """Name lookups of several sizes from 10.0.1.2 and 10.0.3.2, with replies."""
    for i in range(20):
        n, size = (1, 3)[i % 2], 30 + 20 * i
        ask, answer = bytes(size), bytes(2 * size)
        yield to_router(n, ipv4(host(n), host(2), UDP, udp(host(n), host(2), 40000 + i, 53, ask), ident=i))
        yield to_router(2, ipv4(host(2), host(n), UDP, udp(host(2), host(n), 53, 40000 + i, answer), ident=i))


def connection():
    """One whole TCP connection: 10.0.1.2 fetches 14 kB from port 80 of 10.0.3.2."""
    client, server, ask = host(1), host(3), b"GET / HTTP/1.0\r\n\r\n"
    fin, syn, psh, ack = 1, 2, 8, 16

    def up(seq, acked, flags, data=b""):
        return to_router(1, ipv4(client, server, TCP, tcp(client, server, 50000, 80, seq, acked, flags, data), flags=DF))

    def down(seq, acked, flags, data=b""):
        return to_router(3, ipv4(server, client, TCP, tcp(server, client, 80, 50000, seq, acked, flags, data), flags=DF))

    yield up(1000, 0, syn)
    yield down(9000, 1001, syn | ack)
    yield up(1001, 9001, ack)
    yield up(1001, 9001, psh | ack, ask)
    at, acked = 9001, 1001 + len(ask)
    for i in range(10):
        yield down(at, acked, ack, bytes([65 + i]) * 1400)
        at += 1400
        yield up(acked, at, ack)
    yield down(at, acked, fin | ack)
    yield up(acked, at + 1, fin | ack)
    yield down(at + 1, acked + 1, ack)


def troubles():
    """Packets that the router must answer with an ICMP error, or drop."""
    probe = udp(host(1), host(2), 33434, 33434, b"probe")
    shouted = udp("10.0.1.255", host(2), 33434, 33434, b"probe")
    yield to_router(1, ipv4(host(1), host(2), UDP, probe, ttl=1, ident=1))          # time exceeded
    yield to_router(1, ipv4(host(1), host(2), UDP, probe, ident=2, bad_sum=True))   # dropped
    yield to_router(1, ipv4(host(1), host(2), ICMP, echo(8, 7, 1, 1600), ident=3))  # two fragments
    yield to_router(1, ipv4(host(1), host(2), ICMP, echo(8, 7, 2, 1600), ident=4, flags=DF))  # too big
    yield to_router(1, ipv4(host(1), "10.0.1.3", UDP, udp(host(1), "10.0.1.3", 9, 9, b"x"), ident=5))  # redirect
    yield to_router(1, ipv4(host(1), "192.0.2.1", UDP, udp(host(1), "192.0.2.1", 9, 9, b"x"), ident=6))  # no route
    yield to_router(1, ipv4(host(1), gateway(1), UDP, udp(host(1), gateway(1), 9, 9, b"x"), ident=7))  # no port
    record_route = bytes([7, 11, 4]) + bytes(8)
    yield to_router(1, ipv4(host(1), host(2), UDP, probe, ident=8, options=record_route))
    broken_option = bytes([7, 11, 3]) + bytes(8)  # a pointer before the option's data
    yield to_router(1, ipv4(host(1), host(2), UDP, probe, ident=9, options=broken_option))  # parameter problem
    yield to_router(1, ipv4("10.0.1.255", host(2), UDP, shouted, ident=10))         # broadcast source: dropped
    whole = udp(host(1), host(2), 9, 9, bytes(2000))
    yield to_router(1, ipv4(host(1), host(2), UDP, whole[:1480], ident=11, flags=MF))
    yield to_router(1, ipv4(host(1), host(2), UDP, whole[1480:], ident=11, offset=1480))
    yield to_router(1, ipv4(host(1), host(2), UDP, probe, ident=12))[:40]           # cut short


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "sample.pcap"
    frames = [frame for part in (neighbours, pings, questions, connection, troubles) for frame in part()]
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for i, frame in enumerate(frames):
            out.write(struct.pack("<IIII", START + i // 100, i % 100 * 10_000, len(frame), len(frame)))
            out.write(frame)
    print(f"{path}: {len(frames)} frames")


if __name__ == "__main__":
    main()
