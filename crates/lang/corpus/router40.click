// A two-interface IP router, after Click's standard one.
define($MAC0 00:00:c0:ae:67:ef, $MAC1 00:00:c0:4f:71:ef)

/* Shared ARP classifier */
elementclass Arp { $ip, $mac |
    input -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    c[0] -> ARPResponder($ip $mac) -> output;
    c[1] -> [1] output; c[2] -> [2] output; c[3] -> Discard
}

arp0 :: Arp(1.0.0.1, $MAC0);
arp1 :: Arp(2.0.0.1, $MAC1);
from0 :: FromDevice(eth0, PROMISC true); from1 :: FromDevice(eth1, PROMISC true);
out0, out1 :: Queue(200); to0 :: ToDevice(eth0); to1 :: ToDevice(eth1);
out0 -> to0; out1 -> to1;
arpq0 :: ARPQuerier(1.0.0.1, $MAC0); arpq1 :: ARPQuerier(2.0.0.1, $MAC1);

from0 -> arp0; arp0[0] -> out0; arp0[1] -> [1] arpq0; arp0[2] -> Paint(1) -> ip :: Strip(14);
from1 -> arp1; arp1[0] -> out1; arp1[1] -> [1] arpq1; arp1[2] -> Paint(2) -> ip;
arpq0[0] -> out0; arpq1[0] -> out1;

ip -> CheckIPHeader(INTERFACES 1.0.0.1/1.0.0.0 2.0.0.1/2.0.0.0, VERBOSE false)
    -> rt :: StaticIPLookup(1.0.0.1/32 0, 2.0.0.1/32 0, 1.0.0.0/8 1, 2.0.0.0/8 2);
rt[0] -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Print("for the host") -> Discard;

rt[1] -> DropBroadcasts -> cp0 :: PaintTee(1) -> gio0 :: IPGWOptions(1.0.0.1)
    -> FixIPSrc(1.0.0.1) -> dt0 :: DecIPTTL -> fr0 :: IPFragmenter(1500) -> [0] arpq0;
rt[2] -> DropBroadcasts -> cp1 :: PaintTee(2) -> gio1 :: IPGWOptions(2.0.0.1)
    -> FixIPSrc(2.0.0.1) -> dt1 :: DecIPTTL -> fr1 :: IPFragmenter(1500) -> [0] arpq1;

dt0[1] -> ICMPError(1.0.0.1, timeexceeded) -> rt;
dt1[1] -> ICMPError(2.0.0.1, timeexceeded) -> rt;
fr0[1] -> ICMPError(1.0.0.1, unreachable, needfrag) -> rt;
fr1[1] -> ICMPError(2.0.0.1, unreachable, needfrag) -> rt;
gio0[1] -> ICMPError(1.0.0.1, parameterproblem) -> rt;
gio1[1] -> ICMPError(2.0.0.1, parameterproblem) -> rt;
cp0[1] -> ICMPError(1.0.0.1, redirect, host) -> rt;
cp1[1] -> ICMPError(2.0.0.1, redirect, host) -> rt;
