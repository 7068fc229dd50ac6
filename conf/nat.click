// A NAT gateway: hosts on an inner network share one outer address.
//
// TCP, UDP and pings from inside get a port (or identifier) of the outer address, and what answers
// them goes back to who asked. ICMP errors about such packets find their way too, so that
// traceroute and path MTU discovery work; so does FTP, whose clients tell the server by which
// port they want their data. What comes from outside and answers nothing is dropped, but pings to
// the gateway itself are answered.
//
//   castanet run conf/nat.click dev0=eth1 dev1=eth2
//
// Hosts on the inner network use the gateway's address there as theirs. Each value below can be
// given on the command line instead, as the devices are above.

define($dev0 eth0, $ip0 10.0.1.1, $net0 10.0.1.0/24, $mac0 02:00:00:00:01:01,
       $dev1 eth1, $ip1 10.0.2.1, $net1 10.0.2.0/24, $mac1 02:00:00:00:02:01,
       $gw 10.0.2.2, $ports 1024-65535, $mtu 1500,
       // How many flows there may be, and for how many seconds after its last packet none of
       // them makes room for others: a flood of fewer new ones a second leaves everybody room.
       $capacity 1000000, $guarantee 1);

// == The gateway ==

AddressInfo(inner $ip0 $net0 $mac0, outer $ip1 $net1 $mac1);
IPRewriterPatterns(world outer $ports - -);

// Of each: input 0 and output 1 inside, input 1 and output 0 outside. They share the capacity.
flows :: IPRewriter(pattern world 0 1, drop, CAPACITY $capacity, GUARANTEE $guarantee);
ftp :: TCPRewriter(pattern world 0 1, drop, CAPACITY flows, GUARANTEE $guarantee);
pings :: ICMPPingRewriter(pattern world 0 1, drop, CAPACITY flows, GUARANTEE $guarantee);

// Errors about what they have rewritten, from either side.
errors_in, errors_out :: ICMPRewriter(flows ftp pings);

// One network's side of the gateway.
//   input [0] frames from the device      output [0] frames for the device
//   input [1] IP packets to send there    output [1] whole IP packets from there
//                                         output [2] errors about what does not fit
elementclass Side { $ip, $eth, $net, $default, $mtu |
    input[1] -> StaticIPLookup($net 0, $default)
        -> fragments :: IPFragmenter($mtu)
        -> arp :: ARPQuerier($ip, $eth)
        -> [0] output;
    // Whoever it is about knows the gateway by its outer address.
    fragments[1] -> ICMPError(outer:ip, unreachable, needfrag, PMTU $mtu) -> [2] output;

    input[0] -> frames :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    frames[0] -> ARPResponder($ip $eth) -> [0] output;
    frames[1] -> [1] arp;
    // Of fragments only the first has ports: here they are one packet again.
    frames[2] -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> IPReassembler -> [1] output;
    frames[3] -> Discard;
}

inside :: Side(inner:ip, inner:eth, $net0, 0.0.0.0/0 0, $mtu);
outside :: Side(outer:ip, outer:eth, $net1, 0.0.0.0/0 $gw 0, $mtu);

inside[2] -> errors_out;
outside[2] -> errors_in;
errors_in[0] -> [1] inside;
errors_out[0] -> [1] outside;

// From inside: what is for the gateway itself, then what is for the world.
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

// From outside: pings to the gateway, then what answers somebody inside.
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
