// The IP router of the Click paper, on three networks.
//
// It answers ARP and ping, forwards between the networks, and sends the ICMP errors that RFC 1812
// requires: time exceeded, redirect, parameter problem, unreachable, fragmentation needed.
// Every packet goes from device to device on one worker, without a queue.
//
//   castanet run conf/router.click dev0=eth1 dev1=eth2 dev2=eth3
//
// Hosts on each network use the router's address there as their gateway. The command line can set
// each value below, as it sets the devices above.

define($dev0 eth0, $ip0 10.0.1.1, $net0 10.0.1.0/24, $mac0 02:00:00:00:01:01,
       $dev1 eth1, $ip1 10.0.2.1, $net1 10.0.2.0/24, $mac1 02:00:00:00:02:01,
       $dev2 eth2, $ip2 10.0.3.1, $net2 10.0.3.0/24, $mac2 02:00:00:00:03:01,
       $mtu 1500);

// == The router ==

AddressInfo(lan0 $ip0 $net0 $mac0,
            lan1 $ip1 $net1 $mac1,
            lan2 $ip2 $net2 $mac2);

// The router's interface to one network.
//   input [0] frames from the device      output [0] frames for the device
//   input [1] IP packets to send there    output [1] IP packets to be routed
elementclass Interface { $ip, $eth, $color, $nets, $mtu |
    // Output path: the forwarding steps. A packet that fails one causes an ICMP error to be routed.
    input[1] -> DropBroadcasts
        -> same :: PaintTee($color)
        -> options :: IPGWOptions($ip)
        -> FixIPSrc($ip)
        -> ttl :: DecIPTTL
        -> fragments :: IPFragmenter($mtu)
        -> arp :: ARPQuerier($ip, $eth)
        -> [0] output;
    same[1] -> ICMPError($ip, redirect, host) -> [1] output;
    options[1] -> ICMPError($ip, parameterproblem) -> [1] output;
    ttl[1] -> ICMPError($ip, timeexceeded) -> [1] output;
    fragments[1] -> ICMPError($ip, unreachable, needfrag, PMTU $mtu) -> [1] output;

    // Input path: answers ARP requests for this address, learns from replies, passes valid IP on.
    input[0] -> frames :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    frames[0] -> ARPResponder($ip $eth) -> [0] output;
    frames[1] -> [1] arp;
    frames[2] -> Paint($color)
        -> Strip(14)
        -> CheckIPHeader(INTERFACES $nets)
        -> GetIPAddress(16)
        -> [1] output;
    frames[3] -> Discard;
}

side0 :: Interface(lan0:ip, lan0:eth, 1, $net0 $net1 $net2, $mtu);
side1 :: Interface(lan1:ip, lan1:eth, 2, $net0 $net1 $net2, $mtu);
side2 :: Interface(lan2:ip, lan2:eth, 3, $net0 $net1 $net2, $mtu);

routes :: StaticIPLookup(
    lan0:ip 0, lan1:ip 0, lan2:ip 0,
    lan0:ipnet 1, lan1:ipnet 2, lan2:ipnet 3,
    0.0.0.0/0 4);

side0[1] -> routes;
side1[1] -> routes;
side2[1] -> routes;
routes[1] -> [1] side0;
routes[2] -> [1] side1;
routes[3] -> [1] side2;

// Packets for the router itself: it answers pings, sends no ICMP error about ICMP, and refuses the
// rest. It does not reassemble fragments, so that fragmented pings get no answer.
routes[0] -> local :: IPClassifier(icmp type echo and ip unfrag, icmp, udp or tcp, -);
local[0] -> ICMPPingResponder -> routes;
local[1] -> Discard;
local[2] -> ICMPError(lan0:ip, unreachable, port) -> routes;
local[3] -> ICMPError(lan0:ip, unreachable, protocol) -> routes;

// Packets without a route.
routes[4] -> ICMPError(lan0:ip, unreachable, net) -> routes;

// == The devices ==

FromDevice($dev0) -> [0] side0 [0] -> ToDevice($dev0);
FromDevice($dev1) -> [0] side1 [0] -> ToDevice($dev1);
FromDevice($dev2) -> [0] side2 [0] -> ToDevice($dev2);
