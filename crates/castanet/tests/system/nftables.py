"""The rules of nftables that `docs/firewalls.md` translates, beside their translations, on the same packets.

usage: SCRIPT PROGRAM SOCKET RIGHT PAGE FORM RECORD [MIDDLE]

FORM is `route` or `bridge`. With MIDDLE, the namespace of Linux as a router or bridge, each rule is loaded there
by nft, and the packets that come out are written into the file RECORD. Without it, each translation is given to
the middlebox, and the packets that come out are compared with those of the file.
"""

import json
import re
import select
import socket
import subprocess
import sys
import time

from scapy.all import ICMP, IP, TCP, UDP, Dot1Q, Ether, IPv6, Raw, raw
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NS

from ends import FAILED, LEFT, RIGHT, command, finish

PAGE, FORM, RECORD = sys.argv[4:7]
MIDDLE = sys.argv[7] if len(sys.argv) > 7 else None
IS_BRIDGE = FORM == "bridge"
LAN, WAN = "lan", "wan"
TAPS = {LAN: LEFT, WAN: RIGHT}
HOST = {LAN: "02:00:00:00:00:01", WAN: "02:00:00:00:00:02"}
# Where the frames of a side go to, and come from.
PEER = {LAN: HOST[WAN], WAN: HOST[LAN]} if IS_BRIDGE else {LAN: "02:00:00:00:00:a1", WAN: "02:00:00:00:00:a2"}
OTHER_SIDE = {LAN: WAN, WAN: LAN}
# Both ports of packets that find ways; what Linux has kept of them may come late.
WARM_UP = 9999
CLIENT, SERVER, CLIENT6, SERVER6 = "10.0.0.1", "2.0.0.2", "fd00::1", "fd09::2"
OUTSIDE, INSIDE = "198.51.100.1", "10.0.0.5"


def rows():
    """The rule of nftables and the lines of Castanet, for each row of the page."""
    with open(PAGE) as page:
        for line in page:
            row = re.fullmatch(r"\| `(.*)` \| `(.*)` \|\n", line)
            # Some rules need Linux as a router; where it routes, rules have the TTL with which a packet leaves.
            not_here = r"reject|\bct\b|nat to|nfproto" if IS_BRIDGE else r"ip ttl|vlan|icmpv6"
            if row and not re.search(not_here, row[1]):
                yield row[1], row[2].split("`<br>`")


def ruleset(nft):
    """What `nft -f` reads for a rule of the page: rules that follow each other have `; ` between them."""
    family = "bridge" if IS_BRIDGE else "ip" if "nat to" in nft else "inet"
    kind, hook, priority = "filter", "forward", 0
    if "snat" in nft:
        kind, hook, priority = "nat", "postrouting", 100
    if "dnat" in nft:
        kind, hook, priority = "nat", "prerouting", -100
    parts = []
    if "@blocked" in nft:
        parts.append("set blocked { type ipv4_addr; flags interval; elements = { 10.0.0.0/30, 10.9.9.9 }; }")
    if "@sources" in nft:
        parts.append("set sources { type ipv4_addr; flags dynamic; }")
    rules, chain = nft, re.search(r"; (chain .*)", nft)
    if chain:
        rules = nft[: chain.start()]
        parts.append(chain[1])
    rules = rules.replace("; ", "\n")
    parts.append(f"chain test {{ type {kind} hook {hook} priority {priority};\n{rules}\n}}")
    return f"flush ruleset\ntable {family} test {{\n" + "\n".join(parts) + "\n}\n"


def load(nft, translation):
    """Replaces the rules of the router, or of the middlebox."""
    if MIDDLE is None:
        command("flush")
        for line in translation:
            command(line)
        return
    words = ["nsenter", f"--net={MIDDLE}", "nft", "-f", "-"]
    ran = subprocess.run(words, input=ruleset(nft), capture_output=True, text=True)
    if ran.returncode != 0:
        FAILED.append(f"nft refuses {nft}: {ran.stderr}")


def packets(nft, first):
    """Steps: where packets come from, and these. Each row has ports of its own, so that no connection is known."""
    there, back = IP(src=CLIENT, dst=SERVER, id=7), IP(src=SERVER, dst=CLIENT, id=8)
    there6 = IPv6(src=CLIENT6, dst=SERVER6)
    port = iter(range(first, first + 100))
    data = Raw(b"0123456789" * 6)
    tcp = lambda dport, flags="S", sport=None, **more: TCP(
        sport=sport or next(port), dport=dport, flags=flags, seq=1000, ack=2000 if "A" in flags else 0, **more
    )
    if "limit rate over" in nft:
        # At once, as time gives more.
        yield LAN, [there / tcp(22) for _ in range(8)]
        yield LAN, [IP(src="10.0.0.4", dst=SERVER) / tcp(22) for _ in range(3)]
        return
    web, name, error = next(port), next(port), lambda inner: ICMP(type=3, code=1) / Raw(raw(inner)[:28] + b"\0" * 8)
    # A connection, from its first packet on.
    yield LAN, there / tcp(80, sport=web, options=[("MSS", 1460)])
    yield WAN, back / TCP(sport=80, dport=web, flags="SA", seq=2000, ack=1001)
    yield LAN, there / TCP(sport=web, dport=80, flags="A", seq=1001, ack=2001)
    yield LAN, there / TCP(sport=web, dport=80, flags="PA", seq=1001, ack=2001) / data
    # A datagram, its answer, and an error about it.
    asked = there / UDP(sport=name, dport=53) / data
    yield LAN, asked
    if "snat" not in nft:
        yield WAN, back / UDP(sport=53, dport=name) / data
        forwarded = IP(raw(asked))
        forwarded.ttl -= 1
        del forwarded.chksum
        yield WAN, back / error(forwarded)
    yield LAN, there / ICMP(id=first, seq=1) / data
    yield WAN, back / ICMP(type=0, id=first, seq=1) / data
    # Of no connection.
    yield WAN, back / tcp(22)
    yield WAN, back / tcp(80, "SA")
    yield LAN, there / tcp(22, "SA")
    yield LAN, there / tcp(80, "R")
    yield LAN, there / tcp(80, "A")
    yield LAN, there / tcp(80, "FPU")
    yield WAN, back / error(there / UDP(sport=next(port), dport=9))
    yield WAN, back / UDP(sport=53, dport=next(port)) / data
    # What the rules of the page ask about.
    yield LAN, there / tcp(8050)
    yield LAN, there / tcp(8101)
    yield LAN, there / UDP(sport=next(port), dport=9) / Raw(b"x" * 600)
    yield LAN, IP(src=CLIENT, dst=SERVER, ttl=4) / UDP(sport=next(port), dport=9) / data
    yield LAN, IP(src=CLIENT, dst=SERVER, ttl=5) / UDP(sport=next(port), dport=9) / data
    yield LAN, IP(src=CLIENT, dst=SERVER, tos=0xB8) / UDP(sport=next(port), dport=9) / data
    # Linux does not reject what it cannot check.
    if "reject" not in nft:
        yield LAN, IP(src=CLIENT, dst=SERVER, proto=99) / data
    yield LAN, IP(src="192.168.1.7", dst=SERVER) / tcp(22)
    yield LAN, IP(src="10.0.0.4", dst=SERVER) / UDP(sport=next(port), dport=9) / data
    yield LAN, IP(src="10.9.9.9", dst=SERVER) / UDP(sport=next(port), dport=9) / data
    for options in [[("MSS", 900)], [("MSS", 1460), ("SAckOK", b""), ("NOP", None), ("WScale", 7)], []]:
        yield LAN, there / tcp(80, options=options)
    for _ in range(7):
        yield LAN, there / tcp(22)
    # IPv6.
    yield LAN, there6 / tcp(22)
    yield LAN, there6 / tcp(8050)
    yield LAN, there6 / UDP(sport=next(port), dport=53) / data
    yield LAN, IPv6(src="2001:db8::1", dst=SERVER6) / UDP(sport=next(port), dport=9) / data
    yield LAN, there6 / ICMPv6EchoRequest(id=first, data=b"x" * 60)
    # Frames that a bridge has, and no router.
    if IS_BRIDGE:
        yield LAN, there6 / ICMPv6ND_NS(tgt=SERVER6)
        for vlan in [99, 150, 200, 201]:
            yield LAN, Dot1Q(vlan=vlan) / IP(src="1.0.0.1", dst=SERVER) / UDP(sport=next(port), dport=9) / data
    # Translated addresses.
    if "snat" in nft:
        yield WAN, IP(src=SERVER, dst=OUTSIDE) / UDP(sport=53, dport=name) / data
    if "dnat" in nft:
        inner = next(port)
        yield LAN, there / tcp(22, sport=inner)
        yield LAN, IP(src=INSIDE, dst=CLIENT) / TCP(sport=2222, dport=inner, flags="SA", seq=5, ack=1001)


def essence(packet):
    """What a receiver makes of a packet: all of it if it was forwarded; routers write errors in forms of their own.

    Linux quotes a packet with the TTL that it would have left with, and has the address of the interface by which
    the error leaves.
    """
    by_router = packet.src in ("10.255.255.254", OUTSIDE, "fd00::fe", "fd09::1")
    if ICMP in packet and packet[ICMP].type == 3 and by_router:
        quoted = raw(packet[ICMP].payload)[:28]
        quoted = (quoted[:8] + quoted[9:10] + quoted[12:]).hex()
        return f"router > {packet.dst} unreachable {packet[ICMP].code} of {quoted}"
    if packet.version == 6 and packet.nh == 58 and raw(packet)[40] == 1 and by_router:
        quoted = raw(packet)[48:88]
        return f"router > {packet.dst} unreachable {raw(packet)[41]} of {(quoted[:7] + quoted[8:]).hex()}"
    if TCP in packet and "R" in packet[TCP].flags:
        it = packet[TCP]
        return f"{packet.src}:{it.sport} > {packet.dst}:{it.dport} {it.flags} {it.seq} {it.ack}"
    return raw(packet).hex()


def is_of_warm_up(ether):
    return UDP in ether and ether[UDP].sport == ether[UDP].dport == WARM_UP


def heard(side, frame):
    """What comes out at a side, as a word of the comparison; None for what a router says to its neighbours."""
    ether = Ether(frame)
    ip = ether.payload
    if ether.src != PEER[side] or ether.dst.startswith("33:33") or is_of_warm_up(ether):
        return None
    if IS_BRIDGE:
        return f"{side} {frame.hex()}"
    if ether.type == 0x800:
        return f"{side} {essence(IP(raw(ip)[: ip.len]))}"
    is_discovery = ether.type == 0x86DD and ip.nh == 58 and raw(ip)[40] in range(130, 138)
    if ether.type != 0x86DD or is_discovery or ip.nh == 0:
        return None
    return f"{side} {essence(IPv6(raw(ip)[: 40 + ip.plen]))}"


def arrived(wait, wanted=None):
    """What comes out, until there is as much as is wanted, or nothing more comes."""
    came, end = [], time.monotonic() + wait
    while (left := end - time.monotonic()) > 0 and (wanted is None or len(came) < wanted):
        ready, _, _ = select.select(list(TAPS.values()), [], [], left)
        for side, tap in TAPS.items():
            if tap in ready:
                frame, address = tap.recvfrom(65536)
                if address[2] != socket.PACKET_OUTGOING:
                    came.append(heard(side, frame))
        came = [it for it in came if it is not None]
    return came


def send(side, packets):
    frames = [raw(Ether(src=HOST[side], dst=PEER[side]) / packet) for packet in packets]
    for frame in frames:
        TAPS[side].send(frame)


def one_or_more(packets):
    return packets if isinstance(packets, list) else [packets]


def warm_up():
    """Sends packets until all ways are known: neighbours have been found, addresses are in use."""
    command("flush") if MIDDLE is None else None
    for side, packet in [
        (LAN, IP(src=CLIENT, dst=SERVER)),
        (WAN, IP(src=SERVER, dst=CLIENT)),
        (LAN, IPv6(src=CLIENT6, dst=SERVER6)),
        (WAN, IPv6(src=SERVER6, dst=CLIENT6)),
    ]:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            send(side, [packet / UDP(sport=WARM_UP, dport=WARM_UP)])
            frames = [tap.recvfrom(65536)[0] for tap in select.select(TAPS.values(), [], [], 0.2)[0]]
            if any(is_of_warm_up(Ether(frame)) and Ether(frame).src == PEER[OTHER_SIDE[side]] for frame in frames):
                break
        else:
            FAILED.append(f"{packet.summary()} does not arrive without rules")
    arrived(0.5)


def fates(nft, translation, first, wanted):
    """What comes of each step of a row."""
    load(nft, translation)
    got = []
    for n, (side, packet) in enumerate(packets(nft, first)):
        send(side, one_or_more(packet))
        # The kernel has forwarded before `send` returns, or soon after.
        came = arrived(0.02) if wanted is None else arrived(5 if wanted[n] else 0.02, len(wanted[n]) or None)
        got.append(came)
    return got


warm_up()
recorded = {} if MIDDLE else json.load(open(RECORD))
count = 0
for n, (nft, translation) in enumerate(rows()):
    wanted = recorded.get(nft)
    got = fates(nft, translation, 1024 + 100 * n, wanted)
    count += len(got)
    if MIDDLE:
        recorded[nft] = got
    elif got != wanted:
        sent = list(packets(nft, 1024 + 100 * n))
        for (side, packet), ours, theirs in zip(sent, got, wanted):
            if ours != theirs:
                summary = ", ".join(it.summary() for it in one_or_more(packet))
                FAILED.append(f"{nft}\n{side} {summary}\nnftables {theirs}\nhere     {ours}")
if MIDDLE:
    json.dump(recorded, open(RECORD, "w"))
if count < 500:
    FAILED.append(f"only {count} steps: the page has lost its table")
finish("packets", count)
