// An IPv6 router on two networks.
//
// It uses neighbour discovery (RFC 4861), forwards between the networks, and sends the ICMPv6
// errors that RFC 4443 requires: time exceeded, too big, unreachable.
//
//   castanet run conf/router6.click dev0=eth1 dev1=eth2
//
// Hosts on each network use the router's address there as their gateway. The command line can set
// each value below, as it sets the devices above.

define($dev0 eth0, $ip0 2001:db8:1::1, $net0 2001:db8:1::/64, $mac0 02:00:00:00:01:01, $mtu0 1500,
       $dev1 eth1, $ip1 2001:db8:2::1, $net1 2001:db8:2::/64, $mac1 02:00:00:00:02:01, $mtu1 1500);

// An ICMPv6 error, with the router's address on the sender's network (RFC 4443, 2.2).
elementclass Complaint { $type, $code, $mtu |
    input -> from :: PaintSwitch;
    from[0] -> ICMP6Error($ip0, $type, $code, PMTU $mtu) -> output;
    from[1] -> ICMP6Error($ip1, $type, $code, PMTU $mtu) -> output;
}

// The router's interface to one network.
//   input [0] frames from the device      output [0] frames for the device
//   input [1] IP packets to send there    output [1] IP packets to be routed
elementclass Interface { $ip, $eth, $color, $mtu |
    // Output path: the forwarding steps. A packet that fails one causes an ICMPv6 error.
    input[1] -> hops :: DecIP6HLIM
        -> size :: IP6Fragmenter($mtu)
        -> nd :: IP6NDSolicitor($ip, $eth)
        -> [0] output;
    hops[1] -> Complaint(3, 0, $mtu) -> [1] output;
    size[1] -> Complaint(2, 0, $mtu) -> [1] output;

    // Input path: answers solicitations, learns from advertisements, passes valid IPv6 on.
    input[0] -> frames :: Classifier(12/86dd 20/3a 54/87, 12/86dd 20/3a 54/88, 12/86dd, -);
    frames[0] -> IP6NDAdvertiser($ip $eth) -> [0] output;
    frames[1] -> [1] nd;
    frames[2] -> Paint($color)
        -> Strip(14)
        -> CheckIP6Header
        -> GetIP6Address(24)
        -> [1] output;
    frames[3] -> Discard;
}

side0 :: Interface($ip0, $mac0, 0, $mtu0);
side1 :: Interface($ip1, $mac1, 1, $mtu1);

// Not forwarded: multicast, link-local addresses, :: and ::1, and the router's own addresses.
routes :: LookupIP6Route(
    $net0 0, $net1 1,
    ff00::/8 2, fe80::/10 2, ::/127 2, $ip0/128 2, $ip1/128 2,
    ::/0 3);

FromDevice($dev0) -> [0] side0;
FromDevice($dev1) -> [0] side1;
side0[0] -> ToDevice($dev0);
side1[0] -> ToDevice($dev1);

side0[1] -> routes;
side1[1] -> routes;
routes[0] -> [1] side0;
routes[1] -> [1] side1;
routes[2] -> Discard;
routes[3] -> Complaint(1, 0, $mtu0) -> routes;
