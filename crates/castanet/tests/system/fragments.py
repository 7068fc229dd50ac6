"""What comes of fragments and malformed frames behind a middlebox, with Linux as the host there.

Runs on one side of a middlebox that bridges, sends frames that scapy makes, and looks at what
comes out on the other side and at what the host there answers.
"""

import select
import socket
import subprocess
import threading

from scapy.all import ARP, ICMP, IP, TCP, UDP, Dot1AD, Dot1Q, Ether, IPv6, Raw, fragment, raw
from scapy.layers.inet import IPOption_NOP, IPOption_RR
from scapy.layers.inet6 import (
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
)

from ends import FAILED, LEFT, RIGHT, command, finish, on_the_other_side

# Nobody here has these addresses, so nobody resets what is answered.
A4, A6, B4, B6, NAT = "10.9.0.99", "fd09::99", "10.9.0.2", "fd09::2", "10.9.0.77"
OUT, BACK = "02:00:00:00:00:01", "06:00:00:00:00:02"
ETHER = Ether(src=OUT, dst=BACK)
CLOSED, OPEN, MARK = 5000, 5001, 5002
CHECKS = 0
PORTS = iter(range(20000, 60000))
IDS = iter(range(1, 60000))


def serve(port):
    servers = [
        socket.create_server(("", port), family=socket.AF_INET),
        socket.create_server(("::", port), family=socket.AF_INET6),
    ]
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.bind(("", port))

    def answer():
        while True:
            data, peer = echo.recvfrom(65536)
            echo.sendto(data, peer)

    threading.Thread(target=answer, daemon=True).start()
    return servers


SERVERS = [on_the_other_side(lambda: serve(port)) for port in (CLOSED, OPEN, MARK)]


def rules(*lines):
    command("flush")
    command("other accept")
    for line in lines:
        command(line)


def check(what, wanted, came):
    global CHECKS
    CHECKS += 1
    if wanted != came:
        FAILED.append(f"{what}: wanted {wanted}, came {came}")


def frames(it, until):
    """Frames that a tap hears, up to one that is what `until` says."""
    all_of_them = []
    while select.select([it], [], [], 10)[0]:
        data, address = it.recvfrom(65536)
        if address[2] == socket.PACKET_OUTGOING:
            continue
        frame = Ether(data)
        if until(frame):
            return all_of_them
        all_of_them.append(frame)
    FAILED.append("the frame behind them is missing")
    return all_of_them


def send(packets):
    for packet in packets:
        LEFT.send(raw(packet if isinstance(packet, Ether) else ETHER / packet))


def answered(packets, port, sport):
    """Whether the host says SYN ACK, before it answers another SYN behind these packets."""
    mark = next(PORTS)
    send(packets)
    send([IP(src=A4, dst=B4) / TCP(sport=mark, dport=MARK, flags="S")])
    is_answer = lambda it, to: TCP in it and it[TCP].flags == "SA" and it[TCP].dport == to
    seen = frames(LEFT, lambda it: is_answer(it, mark))
    return any(is_answer(it, sport) and it[TCP].sport == port for it in seen)


MARKER = raw(Ether(src=OUT, dst=BACK, type=0x88B5) / Raw(b"end" * 20))


def passed(packets, marker=MARKER):
    """What comes out of these on the other side, before a frame behind them."""
    while select.select([RIGHT], [], [], 0)[0]:
        RIGHT.recv(65536)
    for packet in packets:
        LEFT.send(packet if isinstance(packet, bytes) else raw(ETHER / packet))
    LEFT.send(marker)
    ours = lambda it: it.src == OUT
    return [it for it in frames(RIGHT, lambda it: raw(it)[:14] == marker[:14]) if ours(it)]


def cut4(packet, *at):
    """A packet of IPv4 in pieces, cut after these many bytes of what it carries."""
    whole, number = IP(raw(packet)), next(IDS)
    body, ends = raw(whole.payload), [0, *at, len(raw(whole.payload))]
    return [
        IP(src=whole.src, dst=whole.dst, proto=whole.proto, id=number, frag=start // 8,
           flags="MF" if end < len(body) else 0) / Raw(body[start:end])
        for start, end in zip(ends, ends[1:])
    ]


def cut6(segment, *at, options=b""):
    """The same of IPv6, with destination options behind the fragment header."""
    body, number = options + segment, next(IDS)
    ends = [0, *(len(options) + it for it in at), len(body)]
    head = 60 if options else 6
    return [
        IPv6(src=A6, dst=B6, nh=44) /
        IPv6ExtHdrFragment(nh=head, offset=start // 8, m=int(end < len(body)), id=number) /
        Raw(body[start:end])
        for start, end in zip(ends, ends[1:])
    ]


OPTIONS = bytes([6, 0, 1, 4, 0, 0, 0, 0])


def syn4(port, sport, data=b""):
    return IP(src=A4, dst=B4) / TCP(sport=sport, dport=port, flags="S") / Raw(data)


def syn6(port, sport, data=b""):
    packet = IPv6(src=A6, dst=B6) / TCP(sport=sport, dport=port, flags="S") / Raw(data)
    return raw(IPv6(raw(packet)).payload)


DATA = b"0123456789" * 4


def kinds(port):
    """SYNs in pieces that a host puts together, by name."""
    def made(name, make):
        sport = next(PORTS)
        pieces = make(sport)
        yield name, pieces, sport
        sport = next(PORTS)
        yield name + " turned round", make(sport)[::-1], sport

    yield from made("IPv4", lambda it: cut4(syn4(port, it, DATA), 24))
    yield from made("IPv4 in three", lambda it: cut4(syn4(port, it, DATA), 24, 40))
    yield from made("IPv6", lambda it: cut6(syn6(port, it, DATA), 24))
    yield from made("IPv6 with options", lambda it: cut6(syn6(port, it, DATA), 24, options=OPTIONS))


def fragments_and_ports():
    # Linux answers, so it is the rule that keeps them away.
    for lines, port, wanted in [
        ([], CLOSED, True),
        ([f"tcp-dport {CLOSED} drop"], CLOSED, False),
        ([f"tcp-dport {CLOSED} drop"], OPEN, True),
        ([f"add-stateful tcp-dport {OPEN} accept", f"add-stateful tcp-dport {MARK} accept",
          "ip-saddr 10.9.0.99 drop", "ip6-saddr fd09::99 drop"], CLOSED, False),
        ([f"add-stateful tcp-dport {OPEN} accept", f"add-stateful tcp-dport {MARK} accept",
          "ip-saddr 10.9.0.99 drop", "ip6-saddr fd09::99 drop"], OPEN, True),
    ]:
        rules(*lines)
        for name, pieces, sport in kinds(port):
            check(f"{lines}: SYN to {port}, {name}", wanted, answered(pieces, port, sport))


def tiny_fragments():
    for lines, wanted in [([], True), ([f"tcp-dport {CLOSED} drop"], False)]:
        rules(*lines)
        for turn in (1, -1):
            sport = next(PORTS)
            pieces = cut4(syn4(CLOSED, sport), 16)[::turn]
            check(f"{lines}: SYN after 16 bytes, {turn}", wanted, answered(pieces, CLOSED, sport))
    rules(f"tcp-dport {CLOSED} drop")
    for port in (CLOSED, OPEN):
        # A first fragment without all headers, and what begins within them.
        check("tiny", 0, len(passed(cut4(syn4(port, next(PORTS)), 8))))
        check("tiny of IPv6", 0, len(passed(cut6(syn6(port, next(PORTS)), 16))))
        check("options alone", 0, len(passed(cut6(syn6(port, next(PORTS)), 0, options=OPTIONS))))
    # A fragment header in a fragment.
    inner = IPv6ExtHdrFragment(nh=6, id=1) / Raw(syn6(CLOSED, next(PORTS)))
    outer = IPv6(src=A6, dst=B6) / IPv6ExtHdrFragment(nh=44, id=2)
    check("nested", 0, len(passed([outer / inner])))


def overlapping_fragments():
    rules(f"tcp-dport {CLOSED} drop")
    body = raw(IP(raw(syn4(OPEN, next(PORTS), DATA))).payload)
    other = raw(IP(raw(syn4(CLOSED, next(PORTS), DATA))).payload)
    for make in (
        lambda start, data, more, n: IP(src=A4, dst=B4, proto=6, id=n, frag=start // 8,
                                        flags="MF" if more else 0) / Raw(data),
        lambda start, data, more, n: IPv6(src=A6, dst=B6, nh=44) /
        IPv6ExtHdrFragment(nh=6, offset=start // 8, m=int(more), id=n) / Raw(data),
    ):
        number = next(IDS)
        first = make(0, body[:32], True, number)
        over = make(24, other[24:], False, number)
        rest = make(32, body[32:], False, number)
        came = passed([first, over, rest])
        check("overlap", 1, len(came))
        number = next(IDS)
        first, over = make(0, body[:32], True, number), make(24, other[24:], False, number)
        check("overlap, turned round", 0, len(passed([over, first])))


def disguises(port, sport):
    """A SYN behind headers that a host may see through, by name."""
    tcp = TCP(sport=sport, dport=port, flags="S")
    four, six = IP(src=A4, dst=B4), IPv6(src=A6, dst=B6)
    priority = Dot1Q(vlan=0, prio=5)
    yield "VLAN 0", [ETHER / priority / four / tcp]
    yield "VLAN 0, IPv6", [ETHER / priority / six / tcp]
    yield "VLAN 0 twice", [ETHER / priority / priority / four / tcp]
    yield "VLAN 0 of a provider", [ETHER / Dot1AD(vlan=0) / priority / four / tcp]
    for name, times in ("VLAN 0 eight times", 8), ("VLAN 0 nine times", 9):
        tags = bytes.fromhex("00008100" * (times - 1) + "00000800")
        yield name, [Ether(src=OUT, dst=BACK, type=0x8100) / Raw(tags + raw(four / tcp))]
    yield "VLAN 7", [ETHER / Dot1Q(vlan=7) / four / tcp]
    yield "LLC", [Ether(src=OUT, dst=BACK, type=48) / Raw(b"\xaa\xaa\x03\0\0\0\x08\0") / four / tcp]
    yield "options", [IP(src=A4, dst=B4, options=[IPOption_NOP()] * 4) / tcp]
    yield "record route", [IP(src=A4, dst=B4, options=[IPOption_RR(length=39, routers=["0.0.0.0"] * 9)]) / tcp]
    yield "options of TCP", [four / TCP(sport=sport, dport=port, flags="S", options=[("NOP", None)] * 40)]
    yield "bytes behind", [Ether(src=OUT, dst=BACK, type=0x800) / Raw(raw(four / tcp) + b"x" * 60)]
    yield "no length", [IP(src=A4, dst=B4, len=0) / tcp]
    yield "IPv6 without a length", [IPv6(src=A6, dst=B6, plen=0) / tcp]
    for name, between in [
        ("destination options", [IPv6ExtHdrDestOpt()]),
        ("options twice", [IPv6ExtHdrDestOpt(), IPv6ExtHdrDestOpt()]),
        ("hop by hop", [IPv6ExtHdrHopByHop()]),
        ("routing", [IPv6ExtHdrRouting(type=0, segleft=0)]),
        ("atomic", [IPv6ExtHdrFragment(id=sport)]),
        ("all of them", [IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(), IPv6ExtHdrRouting(type=0, segleft=0),
                         IPv6ExtHdrFragment(id=sport), IPv6ExtHdrDestOpt()]),
    ]:
        packet = six
        for header in between:
            packet = packet / header
        yield name, [packet / tcp]
    whole = IP(raw(four / tcp / DATA))
    first, last = cut4(whole, 24)
    yield "first one tagged", [ETHER / priority / first, last]
    yield "last one tagged", [first, ETHER / priority / last]
    first, last = cut4(whole, 24)
    yield "last one of another protocol", [first, IP(raw(last), proto=17)]
    first, last = cut4(whole, 24)
    last[IP].proto = 17
    yield "last one of UDP", [first, last]
    first, last = cut4(whole, 24)
    yield "first one empty", [IP(src=A4, dst=B4, proto=6, id=first.id, flags="MF"), first, last]
    first, last = cut4(whole, 24)
    yield "first one twice", [first, first, last]
    first, last = cut4(whole, 24)
    other = IP(raw(first))
    other[Raw].load = raw(TCP(sport=sport, dport=OPEN, flags="S"))[:4] + other[Raw].load[4:]
    yield "first one of two ports", [other, first, last]
    segment = syn6(port, sport, DATA)
    first, last = cut6(segment, 24)
    last[IPv6ExtHdrFragment].nh = 17
    yield "last one of another next header", [first, last]
    first, last = cut6(segment, 24)
    yield "options before the fragment header", [
        IPv6(src=A6, dst=B6) / IPv6ExtHdrDestOpt() / it[IPv6ExtHdrFragment] for it in (first, last)
    ]
    yield "options before one of them", [
        IPv6(src=A6, dst=B6) / IPv6ExtHdrDestOpt() / cut[IPv6ExtHdrFragment] if n == 0 else cut
        for n, cut in enumerate(cut6(segment, 24))
    ]


def disguised_segments():
    """Whatever the host understands, the rule does too."""
    stateful = [f"add-stateful tcp-dport {it} accept" for it in (OPEN, MARK)]
    kept_out = [
        [f"tcp-dport {CLOSED} drop"],
        [*stateful, "ip-saddr 10.9.0.99 drop", "ip6-saddr fd09::99 drop", "other arp"],
    ]
    rules()
    sport = next(PORTS)
    names = [name for name, _ in disguises(OPEN, sport)]
    understood = set()
    for n, name in enumerate(names):
        sport = next(PORTS)
        if answered([*disguises(OPEN, sport)][n][1], OPEN, sport):
            understood.add(name)
    print("the host understands:", ", ".join(name for name in names if name in understood))
    check("the host understands some", True, len(understood) > len(names) // 2)
    for lines in kept_out:
        rules(*lines)
        for n, name in enumerate(names):
            sport = next(PORTS)
            came = answered([*disguises(CLOSED, sport)][n][1], CLOSED, sport)
            check(f"{lines}: SYN to {CLOSED}, {name}", False, came)
            sport = next(PORTS)
            came = answered([*disguises(OPEN, sport)][n][1], OPEN, sport)
            # The one that the host knows better: more tags are malformed.
            wanted = name in understood and name != "VLAN 0 nine times"
            check(f"{lines}: SYN to {OPEN}, {name}", wanted, came)


def malformed_frames():
    rules("all drop")
    whole = raw(IP(src=A4, dst=B4) / UDP(dport=MARK) / DATA)
    six = raw(IPv6(src=A6, dst=B6) / UDP(dport=MARK) / DATA)
    head = bytes.fromhex(BACK.replace(":", "") + OUT.replace(":", ""))
    four, vlan = head + b"\x08\x00", head + b"\x81\x00\x00\x05\x08\x00"
    frames = [
        four + b"\x44" + whole[1:],
        four + whole[:10],
        four + b"\x4f" + whole[1:30],
        four + whole[:2] + b"\x00\x0a" + whole[4:],
        four + six,
        vlan + b"\x44" + whole[1:],
        vlan + whole[:10],
        head + b"\x86\xdd" + six[:30],
        head + b"\x86\xdd" + whole,
        four + whole,
        vlan + whole,
    ]
    check("malformed", [], [raw(it).hex() for it in passed(frames)])
    pppoe = head + b"\x88\x64\x11\x00\x00\x01\x00\x10\x00\x21" + whole
    check("PPPoE", 1, len(passed([pppoe])))
    arp = raw(Ether(src=OUT, dst=BACK) / ARP(psrc=A4, pdst=B4))
    command("other arp")
    check("other arp", [], [raw(it).hex() for it in passed([pppoe], arp)])
    rules("ip-proto tcp accept", "other drop")
    udp = raw(ETHER / IP(src=A4, dst=B4, tos=4) / UDP(dport=9) / Raw(b"mark" * 20))
    check("other drop", [], [raw(it).hex() for it in passed([pppoe, arp], udp)])
    check("is saved", True, command("other arp").strip() == "other arp")
    # Cut short behind the IP header, where ports matter.
    rules(f"tcp-dport {CLOSED} drop")
    cut = IP(src=A4, dst=B4, proto=6) / Raw(raw(TCP(dport=CLOSED))[:16])
    check("cut short", 0, len(passed([cut])))


def translation():
    rules(f"add-stateful ip-saddr 10.9.0.0/24 ip-daddr {B4} map ip-saddr {NAT}")
    ping = IP(src=A4, dst=B4) / ICMP(id=7, seq=1) / Raw(b"x" * 4000)
    udp = IP(src=A4, dst=B4) / UDP(sport=next(PORTS), dport=OPEN) / Raw(b"y" * 4000)
    for packet in (ping, udp):
        for turn in (1, -1):
            packet[IP].id = next(IDS)
            pieces = fragment(packet, 1400)[::turn]
            came = passed(pieces)
            own = [it for it in came if IP in it]
            check(f"sources, {turn}", {NAT}, {it[IP].src for it in own})
            check(f"pieces, {turn}", len(pieces), len(own))
            # The host puts them together, and what it answers finds its way back.
            seen = []
            while sum(len(it[IP].payload) for it in seen) < 4008:
                if not select.select([LEFT], [], [], 10)[0]:
                    FAILED.append(f"{packet.summary()}, {turn}: no answer")
                    break
                data, address = LEFT.recvfrom(65536)
                if address[2] != socket.PACKET_OUTGOING and IP in Ether(data):
                    it = Ether(data)
                    seen += [it] if it[IP].dst == A4 and it[IP].proto == packet.proto else []
    # Later fragments alone never leave, whatever follows.
    lone = fragment(IP(src=A4, dst=B4, id=next(IDS)) / UDP() / Raw(b"z" * 4000), 1400)[1:]
    check("lone", [], [it.summary() for it in passed(lone)])
    # A host's own, there and back, while others wait.
    for words in (["-c", "2", "-s", "4000", B4], ["-c", "2", "-s", "60000", B4]):
        ran = subprocess.run(["ping", "-n", "-i", "0.2", "-W", "5", *words], capture_output=True, text=True)
        check(f"ping {words}", True, "2 received" in ran.stdout)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
        it.settimeout(10)
        it.sendto(b"u" * 9000, (B4, OPEN))
        check("echo", 9000, len(it.recv(65536)))


fragments_and_ports()
tiny_fragments()
overlapping_fragments()
disguised_segments()
malformed_frames()
translation()
finish("checks", CHECKS)
