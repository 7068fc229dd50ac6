// A router between two networks, small enough to be read at one glance: the example of the pages
// about operation and debugging.
//
//   castanet run conf/two-networks.click dev0=eth1 dev1=eth2
//
// It answers ARP and pings, and forwards between the networks; frames may have the VLAN tag 10. It
// sends no ICMP errors: packets that it does not forward are dropped, and counted by reason.

define($dev0 eth0, $ip0 10.0.1.1, $net0 10.0.1.0/24,
       $dev1 eth1, $ip1 10.0.2.1, $net1 10.0.2.0/24,
       // A network behind a gateway of the second one.
       $far 10.9.0.0/16, $gateway 10.0.2.2,
       $mtu 1500, $queue 200, $rate 1GBps);

elementclass Port { $dev, $ip |
    // From the wire: frames for this router, ARP apart from IP.
    in :: FromDevice($dev) -> mac :: HostEtherFilter($dev:eth)
        -> vlan :: Classifier(12/8100 14/000a%0fff, 12/8100, -);
    vlan[0] -> VLANDecap -> kinds :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    vlan[1] -> wrong_vlan :: Discard;
    vlan[2] -> kinds;
    kinds[0] -> ARPResponder($ip $dev:eth) -> queue :: Queue($queue);
    kinds[1] -> [1] arp :: ARPQuerier($ip, $dev:eth);
    kinds[2] -> Strip(14) -> check :: CheckIPHeader -> [0] output;
    kinds[3] -> other :: Discard;

    // To the wire: the forwarding steps, the next hop's address, the queue.
    input[0] -> ttl :: DecIPTTL -> fragments :: IPFragmenter($mtu, true) -> [0] arp;
    arp -> queue -> shaper :: BandwidthShaper($rate) -> out :: ToDevice($dev);
}

port0 :: Port($dev0, $ip0);
port1 :: Port($dev1, $ip1);

routes :: StaticIPLookup($ip0/32 0, $ip1/32 0, $net0 1, $net1 2, $far $gateway 2);
port0 -> routes;
port1 -> routes;
routes[1] -> port0;
routes[2] -> port1;

// Packets for the router itself.
routes[0] -> local :: IPClassifier(icmp type echo, -);
local[0] -> ICMPPingResponder -> routes;
local[1] -> refused :: Discard;
