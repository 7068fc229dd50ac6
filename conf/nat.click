// A NAT gateway: hosts on an inner network share one outer address.
//
// TCP, UDP and pings from inside get a port (or identifier) of the outer address, and replies go
// back to the sender. ICMP errors about such packets are translated too, so that traceroute and
// path MTU discovery work. FTP works as well, although its clients tell the server the port for
// their data. Packets from outside that are no replies are dropped, except pings to the gateway,
// which it answers.
//
//   castanet run conf/nat.click dev0=eth1 dev1=eth2
//
// Hosts on the inner network use the gateway's address there as their gateway. The command line
// can set each value below, as it sets the devices above.

define($dev0 eth0, $ip0 10.0.1.1, $net0 10.0.1.0/24, $mac0 02:00:00:00:01:01,
       $dev1 eth1, $ip1 10.0.2.1, $net1 10.0.2.0/24, $mac1 02:00:00:00:02:01,
       $gw 10.0.2.2, $ports 1024-65535, $mtu 1500,
       // Capacity in flows, and seconds after its last packet for which a flow keeps its place
       // in a full table: a flood of fewer new flows a second leaves room for all.
       $capacity 1000000, $guarantee 1);

// == The gateway ==

AddressInfo(inner $ip0 $net0 $mac0, outer $ip1 $net1 $mac1);
IPRewriterPatterns(world outer $ports - -);

// Each rewriter has input 0 and output 1 inside, input 1 and output 0 outside, and shares capacity.
flows :: IPRewriter(pattern world 0 1, drop, CAPACITY $capacity, GUARANTEE $guarantee);
ftp :: TCPRewriter(pattern world 0 1, drop, CAPACITY flows, GUARANTEE $guarantee);
pings :: ICMPPingRewriter(pattern world 0 1, drop, CAPACITY flows, GUARANTEE $guarantee);

// ICMP errors about packets that they have rewritten, from either side.
errors_in, errors_out :: ICMPRewriter(flows ftp pings);

// The gateway's interface to one network.
//   input [0] frames from the device      output [0] frames for the device
//   input [1] IP packets to send there    output [1] whole IP packets from there
//                                         output [2] errors about packets over the MTU
elementclass Side { $ip, $eth, $net, $default, $mtu |
    input[1] -> StaticIPLookup($net 0, $default)
        -> fragments :: IPFragmenter($mtu)
        -> arp :: ARPQuerier($ip, $eth)
        -> [0] output;
    // The receiver of the error knows the gateway by its outer address.
    fragments[1] -> ICMPError(outer:ip, unreachable, needfrag, PMTU $mtu) -> [2] output;

    input[0] -> frames :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    frames[0] -> ARPResponder($ip $eth) -> [0] output;
    frames[1] -> [1] arp;
    // Only the first fragment of a packet has ports, so that packets are reassembled here.
    frames[2] -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> IPReassembler -> [1] output;
    frames[3] -> Discard;
}

inside :: Side(inner:ip, inner:eth, $net0, 0.0.0.0/0 0, $mtu);
outside :: Side(outer:ip, outer:eth, $net1, 0.0.0.0/0 $gw 0, $mtu);

inside[2] -> errors_out;
outside[2] -> errors_in;
errors_in[0] -> [1] inside;
errors_out[0] -> [1] outside;

// From inside: packets for the gateway itself, then packets for the outside.
inside[1] -> here :: IPClassifier((dst host inner or dst host outer) and icmp type echo,
                                  dst host inner or dst host outer, -);
here[0] -> ICMPPingResponder -> [1] inside;
here[1] -> Discard;
here[2] -> ttl :: DecIPTTL
    -> kinds :: IPClassifier(dst tcp port 21, tcp or udp, icmp type echo, icmp, -);
ttl[1] -> ICMPError(inner:ip, timeexceeded) -> [1] inside;
kinds[0] -> FTPPortMapper(ftp, flows, 0) -> ftp;
kinds[1] -> flows;
kinds[2] -> pings;
kinds[3] -> errors_out;
kinds[4] -> Discard;
errors_out[1] -> Discard;

// From outside: pings to the gateway, then replies to hosts inside.
outside[1] -> mine :: IPClassifier(dst host outer and icmp type echo, dst host outer, -);
mine[0] -> ICMPPingResponder -> [1] outside;
mine[2] -> Discard;
mine[1] -> out_ttl :: DecIPTTL
    -> answers :: IPClassifier(src tcp port 21, tcp or udp, icmp type echo-reply, icmp, -);
out_ttl[1] -> ICMPError(outer:ip, timeexceeded) -> [1] outside;
answers[0] -> [1] ftp;
answers[1] -> [1] flows;
answers[2] -> [1] pings;
answers[3] -> errors_in;
answers[4] -> Discard;
errors_in[1] -> Discard;

flows[0], ftp[0], pings[0] -> [1] outside;
flows[1], ftp[1], pings[1] -> [1] inside;

// == The devices ==

FromDevice($dev0) -> [0] inside [0] -> ToDevice($dev0);
FromDevice($dev1) -> [0] outside [0] -> ToDevice($dev1);
