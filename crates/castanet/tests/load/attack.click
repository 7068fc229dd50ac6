// What stands behind the interfaces of the router under attack: everything that keeps packets or
// learns from them, in the way of all packets or as a side branch of it.

elementclass Keepers {
    input -> rules :: Middlebox(add-stateful ip-proto tcp accept,
                                add-stateful ip-proto icmp accept,
                                tcp-dport 5000 drop,
                                CONNECTIONS 65536)
        -> all :: Tee -> output;

    all[1] -> whole :: IPReassembler -> Discard;
    all[2] -> flows :: AggregateIPFlows(FRAGMENTS true) -> Discard;
    flows[1] -> Discard;
    all[3] -> AggregateIP(ip src) -> last :: AggregateLast -> Discard;
    last[1] -> Discard;
    all[4] -> AggregateIP(ip src) -> AggregateCounter -> AggregateFirst -> Discard;
    // Longer than the first pool of frames, and hardly ever pulled from.
    all[5] -> held :: Queue(50000) -> RatedUnqueue(10) -> Discard;
    held[1] -> Discard;
    all[6] -> IPClassifier(tcp or udp) -> UDPRewriter(pattern 192.0.2.1 1024-65535# - - 0 0,
                                                      MAPPING_CAPACITY 65536) -> Discard;
}

keepers :: Keepers;
keepers -> routes;

// No ICMP error answers the packets of an attack.
routes[0] -> local :: IPClassifier(icmp type echo and ip unfrag, -);
local[0] -> ICMPPingResponder -> routes;
local[1] -> Discard;
routes[1] -> Discard;
