"""What a middlebox does to packets on the wire, as scapy sees it.

Runs on one side of a middlebox, and looks at the other side too. Each case adds rules, sends
packets that scapy makes, and compares every byte of what comes out with what scapy makes of
what is expected: checksums, lengths and padding included.
"""

import os
import select
import socket
import threading

from scapy.all import ICMP, IP, TCP, UDP, Ether, IPv6, Raw, raw
from scapy.layers.inet6 import (
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
)

from ends import FAILED, LEFT, RIGHT, command, finish, on_the_other_side, tap

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
BACK = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")


def received(tap, wait):
    """The next frame of ours; None if there is none for so long."""
    while select.select([tap], [], [], wait)[0]:
        frame, address = tap.recvfrom(65536)
        if address[2] != socket.PACKET_OUTGOING and frame[6:8] == b"\x02\x00":
            return frame
    return None


def passed(packet, there=True):
    """What comes out at the other end, or None. A frame behind it shows when it is over."""
    one, other, ether = (LEFT, RIGHT, ETHER) if there else (RIGHT, LEFT, BACK)
    one.send(raw(ether / packet))
    # No rule is about ARP-like frames: it always comes through.
    one.send(raw(ether)[:12] + b"\x88\xb5" + b"end" * 20)
    came = received(other, 5)
    if came is not None and came[12:14] == b"\x88\xb5":
        return None
    end = received(other, 5)
    if end is None or end[12:14] != b"\x88\xb5":
        FAILED.append(f"{packet.summary()}: the frame behind it is missing")
    return came


def case(rules, packet, wanted, there=True, keep=False):
    """One case: what comes out of a packet by these rules; None if nothing is to."""
    if not keep:
        command("flush")
        for rule in rules:
            command(rule)
    came = passed(packet, there)
    ether = ETHER if there else BACK
    whole = None if wanted is None else raw(ether / wanted)
    # The link may have padded what was sent; lengths in the headers say what counts.
    if came != whole:
        show = lambda it: "nothing" if it is None else Ether(it).show2(dump=True)
        FAILED.append(f"{rules} of {packet.summary()}\nwanted {show(whole)}\ncame {show(came)}")
    global CASES
    CASES += 1


CASES = 0
V4 = IP(src="10.0.0.1", dst="20.0.0.2", id=7)
V6 = IPv6(src="fd00::1", dst="fd00::2")
PAD = Raw(b"0123456789" * 6)
MSS, SACKOK, STAMP, WSCALE = ("MSS", 1460), ("SAckOK", b""), ("Timestamp", (7, 0)), ("WScale", 7)
NOP = ("NOP", None)
SYN_OPTIONS = [MSS, SACKOK, STAMP, NOP, WSCALE]


def both(change):
    """A case for IPv4, and the same for IPv6."""
    change(V4)
    change(V6)


def stateless():
    case(["all mod ip-ecn 0"], IP(src="10.0.0.1", dst="20.0.0.2", tos=3) / UDP() / PAD,
         IP(src="10.0.0.1", dst="20.0.0.2", tos=0) / UDP() / PAD)
    case(["all mod ip6-ecn 0"], IPv6(src="fd00::1", dst="fd00::2", tc=3) / UDP() / PAD,
         IPv6(src="fd00::1", dst="fd00::2", tc=0) / UDP() / PAD)
    for rule in ["ip-proto udp drop", "ip6-proto udp drop"]:
        ip, other = (V4, V6) if rule.startswith("ip-") else (V6, V4)
        case([rule], ip / UDP() / PAD, None)
        case([rule], other / UDP() / PAD, other / UDP() / PAD)
        case([rule], ip / TCP() / PAD, ip / TCP() / PAD)
    others = ["ip-proto != udp ip-proto != tcp drop", "ip6-proto != udp ip6-proto != tcp drop"]
    case(others, V4 / ICMP() / PAD, None)
    case(others, V6 / ICMPv6EchoRequest(data=b"x" * 60), None)
    both(lambda ip: case(others, ip / UDP() / PAD, ip / UDP() / PAD))
    port = ["tcp-dport 80 mod tcp-dport 443"]
    both(lambda ip: case(port, ip / TCP(dport=80) / PAD, ip / TCP(dport=443) / PAD))
    both(lambda ip: case(port, ip / UDP(dport=80) / PAD, ip / UDP(dport=80) / PAD))
    behind = V6 / IPv6ExtHdrDestOpt() / TCP(dport=80) / PAD
    case(port, behind, V6 / IPv6ExtHdrDestOpt() / TCP(dport=443) / PAD)
    first = V6 / IPv6ExtHdrFragment(nh=6, m=1, id=9) / raw(V6 / TCP(dport=80) / PAD)[40:]
    case(["ip6-eh-fragment drop"], first, None)
    syn = lambda ip, options: ip / TCP(flags="S", dport=80, options=options) / PAD
    both(lambda ip: case(["tcp-opt-mss strip tcp-opt-mss"], syn(ip, [MSS, SACKOK, WSCALE]),
                         syn(ip, [SACKOK, WSCALE])))
    clamp = ["tcp-opt-mss > 1400 mod tcp-opt-mss 1400"]
    both(lambda ip: case(clamp, syn(ip, SYN_OPTIONS), syn(ip, [("MSS", 1400)] + SYN_OPTIONS[1:])))
    both(lambda ip: case(clamp, syn(ip, [("MSS", 900)]), syn(ip, [("MSS", 900)])))
    keep = ["tcp-opt strip ! tcp-opt-mss strip ! tcp-opt-wscale"]
    both(lambda ip: case(keep, syn(ip, SYN_OPTIONS), syn(ip, [MSS, WSCALE])))
    both(lambda ip: case(["tcp-opt-timestamp strip all"], syn(ip, SYN_OPTIONS), syn(ip, [])))
    both(lambda ip: case(["! tcp-opt-mss ! tcp-opt-wscale drop"], syn(ip, [SACKOK]), None))
    both(lambda ip: case(["! tcp-opt-mss ! tcp-opt-wscale drop"], syn(ip, [MSS]), syn(ip, [MSS])))
    both(lambda ip: case(["tcp-opt 22 drop"], syn(ip, [(22, b"ab")]), None))
    both(lambda ip: case(["tcp-opt 22 drop"], syn(ip, [(23, b"ab")]), syn(ip, [(23, b"ab")])))
    missing = ["tcp-syn ! tcp-opt-mss add tcp-opt-mss 1460"]
    both(lambda ip: case(missing, syn(ip, [SACKOK]), syn(ip, [SACKOK, MSS])))
    both(lambda ip: case(missing, syn(ip, [("MSS", 5)]), syn(ip, [("MSS", 5)])))
    case(["all drop", "ip-saddr 10.0.0.0/8 accept"], V4 / UDP() / PAD, V4 / UDP() / PAD)
    case(["all drop", "ip-saddr 10.0.0.0/8 accept"], V6 / UDP() / PAD, None)
    command("flush")
    command("all drop 50")
    came = sum(passed(V4 / UDP() / PAD) is not None for _ in range(200))
    if not 50 < came < 150:
        FAILED.append(f"half is dropped: {came} of 200 came")


def stateful():
    inside, server = IP(src="10.0.0.5", dst="20.0.0.2"), IP(src="20.0.0.2", dst="10.0.0.5")
    acl = ["add-stateful ip-proto tcp ip-saddr 10.0.0.0/24 accept", "ip-proto tcp drop"]
    out, back = inside / TCP(sport=1000) / PAD, server / TCP(sport=80, dport=1000, flags="SA") / PAD
    case(acl, back, None, there=False)
    case(acl, out, out, keep=True)
    case(acl, back, back, there=False, keep=True)
    for rule in [
        "add-stateful ip-saddr 10.0.0.0/24 ip-proto tcp tcp-syn shuffle tcp-sport mod ip-saddr 200.0.0.1",
        "add-stateful ip-proto tcp ip-saddr 10.0.0.0/24 map ip-saddr 200.0.0.1 shuffle tcp-sport",
    ]:
        command("flush")
        command(rule)
        came = passed(inside / TCP(sport=1000) / PAD)
        port = Ether(came)[TCP].sport
        outside = IP(src="200.0.0.1", dst="20.0.0.2")
        if port < 1024 or came != raw(ETHER / outside / TCP(sport=port) / PAD):
            FAILED.append(f"{rule}: {Ether(came).show2(dump=True)}")
        answer = IP(src="20.0.0.2", dst="200.0.0.1") / TCP(sport=80, dport=port, flags="SA") / PAD
        case([rule], answer, back, there=False, keep=True)
        # An error about it, with its first eight bytes, finds who it is of.
        quoted = raw(outside / TCP(sport=port))[:28]
        error = IP(src="9.9.9.9", dst="200.0.0.1") / ICMP(type=3, code=1) / Raw(quoted + b"\0" * 40)
        came = passed(error, there=False)
        inner = came and Ether(came)[ICMP].payload
        if not came or Ether(came)[IP].dst != "10.0.0.5" or inner.src != "10.0.0.5":
            FAILED.append(f"{rule}: {error.summary()} became {came}")
        elif raw(Ether(came)[ICMP].payload)[20:22] != b"\x03\xe8":
            FAILED.append(f"{rule}: the quoted port is not restored")
        elif came[34:] != raw(ICMP(type=3, code=1) / Raw(came[42:])):
            FAILED.append(f"{rule}: the error's checksum is wrong")
    six = ["add-stateful ip6-saddr fd00::/64 map ip6-saddr 2001:db8::9 map udp-sport 4000"]
    case(six, V6 / UDP(sport=9, dport=53) / PAD,
         IPv6(src="2001:db8::9", dst="fd00::2") / UDP(sport=4000, dport=53) / PAD)
    case(six, IPv6(src="fd00::2", dst="2001:db8::9") / UDP(sport=53, dport=4000) / PAD,
         IPv6(src="fd00::2", dst="fd00::1") / UDP(sport=53, dport=9) / PAD, there=False, keep=True)
    echo = ["add-stateful ip6-saddr fd00::/64 map ip6-saddr 2001:db8::9"]
    case(echo, V6 / ICMPv6EchoRequest(id=5, data=b"x" * 60),
         IPv6(src="2001:db8::9", dst="fd00::2") / ICMPv6EchoRequest(id=5, data=b"x" * 60))
    case(echo, IPv6(src="fd00::2", dst="2001:db8::9") / ICMPv6EchoReply(id=5, data=b"x" * 60),
         IPv6(src="fd00::2", dst="fd00::1") / ICMPv6EchoReply(id=5, data=b"x" * 60),
         there=False, keep=True)


def transfer(address, family, peer=None):
    """Sends two megabytes by the kernels' own TCP, each way; the SYNs that crossed."""
    listener = on_the_other_side(lambda: socket.create_server((address, 0), family=family))
    sniffer = on_the_other_side(lambda: tap("right"))
    data, got = os.urandom(1 << 20) * 2, []

    def serve():
        there, who = listener.accept()
        got.append(who[0])
        there.settimeout(30)
        body = bytearray()
        while len(body) < len(data):
            part = there.recv(65536)
            if not part:
                break
            body += part
        got.append(bytes(body) == data)
        there.sendall(data)
        there.close()

    thread = threading.Thread(target=serve)
    thread.start()
    here = socket.create_connection(listener.getsockname()[:2], timeout=30)
    here.sendall(data)
    back = bytearray()
    while len(back) < len(data):
        part = here.recv(65536)
        if not part:
            break
        back += part
    thread.join()
    if got[1:] != [True] or bytes(back) != data:
        FAILED.append(f"{address}: not all came, or something else")
    if peer is not None and got[0] != peer:
        FAILED.append(f"{address}: the server saw {got[0]}, not {peer}")
    syns = {}
    while select.select([sniffer], [], [], 0)[0]:
        packet = Ether(sniffer.recv(65536))
        if TCP in packet and packet[TCP].flags.S:
            syns[bool(packet[TCP].flags.A)] = packet[TCP]
    global CASES
    CASES += 1
    return syns


def real():
    command("flush")
    command("tcp-opt strip ! tcp-opt-mss strip ! tcp-opt-wscale")
    for address, family in [("10.9.0.2", socket.AF_INET), ("fd09::2", socket.AF_INET6)]:
        syns = transfer(address, family)
        names = [name for name, _ in syns[False].options if name not in ("NOP", "EOL")]
        if sorted(names) != ["MSS", "WScale"]:
            FAILED.append(f"{address}: a real SYN has {syns[False].options}")
    command("flush")
    command("add-stateful tcp-syn shuffle tcp-seq-num shuffle tcp-ack-num")
    transfer("10.9.0.2", socket.AF_INET)
    transfer("fd09::2", socket.AF_INET6)
    command("flush")
    command("add-stateful ip-saddr 10.9.0.0/24 ip-proto tcp tcp-syn shuffle tcp-sport mod ip-saddr 10.9.0.77")
    transfer("10.9.0.2", socket.AF_INET, peer="10.9.0.77")
    listed = command("show connections verbose")
    if "as 10.9.0.77:" not in listed or "flags" not in listed:
        FAILED.append(f"connections: {listed}")


stateless()
stateful()
real()
finish("cases", CASES)
