"""Ends a VLAN between two interfaces: vlan_end.py TRUNK ACCESS ID.

Frames of the VLAN on TRUNK come out at ACCESS without their tag, and frames at ACCESS go to TRUNK
with it. Prints `ready` when it runs.
"""
import select
import socket
import struct
import sys

SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
ETH_P_ALL = 3
VLAN_VALID = 1 << 4


def opened(name):
    it = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    it.bind((name, ETH_P_ALL))
    it.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    it.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    return it


def received(it):
    """The frame without its tag, and the VLAN of the tag, or None."""
    frame, ancillary, _, _ = it.recvmsg(65535, 256)
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tci, _ = struct.unpack("IIIHHHH", data[:20])
            if status & VLAN_VALID:
                return frame, tci & 0xFFF
    if frame[12:14] == b"\x81\x00":
        return frame[:12] + frame[16:], struct.unpack("!H", frame[14:16])[0] & 0xFFF
    return frame, None


trunk, access, vlan = opened(sys.argv[1]), opened(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
while True:
    for it in select.select([trunk, access], [], [])[0]:
        frame, found = received(it)
        if it is access:
            trunk.send(frame[:12] + b"\x81\x00" + struct.pack("!H", vlan) + frame[12:])
        elif found == vlan:
            access.send(frame)
