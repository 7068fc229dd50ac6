// A VXLAN endpoint: a local Ethernet and a remote one become one, over the IP network between them.
//
// Frames of the local network go to the remote endpoint in UDP packets (RFC 7348), and those of the
// remote endpoint come out here. The endpoint answers ARP and pings for its address.
//
//   castanet run conf/vxlan.click lan=eth1 wan=eth0 ip=192.0.2.1 remote=198.51.100.2 gw=192.0.2.254
//
// Linux as the other endpoint:
//
//   ip link add vxlan7 type vxlan id 7 dstport 4789 local 198.51.100.2 remote 192.0.2.1
//
// A frame becomes 50 bytes longer: with an MTU of 1450 in both networks no packet is fragmented. The
// command line can set each value below, as it sets the devices above.

define($lan eth1, $wan eth0, $ip 192.0.2.1, $net 192.0.2.0/24, $mac 02:00:00:00:00:01,
       // The other endpoint, and the gateway to it, unless it is in $net.
       $remote 198.51.100.2, $gw 192.0.2.254,
       $vni 7, $mtu 1500);

// Into the tunnel.
FromDevice($lan, PROMISC true, SNIFFER false)
    -> VXLANEncap($vni)
    -> UDPIPEncap($ip, 49152, $remote, 4789)
    -> out :: StaticIPLookup($net 0, 0.0.0.0/0 $gw 0)
    -> fragments :: IPFragmenter($mtu, HONOR_DF false)
    -> arp :: ARPQuerier($ip, $mac)
    -> to_wan :: ToDevice($wan);

// Out of it.
FromDevice($wan)
    -> frames :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
frames[0] -> ARPResponder($ip $mac) -> to_wan;
frames[1] -> [1] arp;
frames[2]
    -> Strip(14)
    -> CheckIPHeader
    -> IPReassembler
    -> own :: IPClassifier(src host $remote and dst host $ip and udp dst port 4789,
                           dst host $ip and icmp type echo, -);
own[0]
    -> StripIPHeader
    -> Strip(8)
    -> VXLANDecap($vni)
    -> ToDevice($lan);
own[1] -> ICMPPingResponder -> out;

// Frames and packets that are not for this endpoint.
frames[3], own[2] -> Discard;
