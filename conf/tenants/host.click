// A tenant with one address: it answers ARP and pings.

define($ip 192.168.7.1, $mac 02:00:00:00:07:01);

FromDevice(eth1)
    -> frames :: Classifier(12/0806 20/0001, 12/0800, -);
frames[0] -> ARPResponder($ip $mac) -> out :: Queue -> ToDevice(eth1);
frames[1]
    -> Strip(14)
    -> CheckIPHeader
    -> own :: IPClassifier(dst host $ip and icmp type echo, -)
    -> pings :: Counter
    -> ICMPPingResponder
    -> Unstrip(14)
    -> EtherMirror
    -> out;

// Frames and packets that are not for this host.
frames[2], own[1] -> Discard;
