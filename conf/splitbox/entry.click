// The entry A of SplitBox on two devices, for two processors and two workers.
//
// Hosts behind `lan` have 10.1.0.1 as their gateway. Each of their packets becomes datagrams for the
// processors and the client, by `dev`. Answers come back by `dev` as plain packets. The host itself
// has no addresses on these devices; those below are the entry's.
//
//   castanet splitbox setup conf/splitbox/firewall.txt --clouds 2 --lanes 2 --out parties …
//   castanet run conf/splitbox/entry.click lan=eth0 dev=eth1 file=parties/entry.splitbox key=entry.key -j 2
//
// Each worker is a lane, with its own part of the blinds, and sends from and to a port of its own.
// Receivers that spread flows over the queues of their devices so spread the lanes over their cores.

define($lan eth0, $lan_ip 10.1.0.1, $lan_net 10.1.0.0/24,
       $dev eth1, $ip 10.7.0.1,
       $client 10.7.0.2, $one 10.7.0.11, $two 10.7.0.12,
       $file entry.splitbox, $key splitbox.key, $port0 7000, $port1 7001);

entry :: SplitBoxEntry($file, KEY_FILE $key);

// Datagrams of a lane have its number as their paint.
elementclass Lanes { $ip, $peer, $port0, $port1 |
    input -> lane :: PaintSwitch;
    lane[0] -> UDPIPEncap($ip, $port0, $peer, $port0) -> output;
    lane[1] -> UDPIPEncap($ip, $port1, $peer, $port1) -> output;
}

// == The other parties ==

from_dev :: FromDevice($dev) -> frames :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
to_dev :: Null -> ToDevice($dev);
arp :: ARPQuerier($ip, $dev:eth) -> to_dev;
frames[0] -> ARPResponder($ip $dev:eth) -> to_dev;
frames[1] -> [1] arp;
frames[2] -> Strip(14)
    -> CheckIPHeader
    -> packets :: IPClassifier(dst host $ip and (dst udp port $port0 or dst udp port $port1),
                               dst net $lan_net, -);
frames[3] -> Discard;

packets[0] -> StripIPHeader -> Strip(8) -> [1] entry;
entry[0] -> Lanes($ip, $client, $port0, $port1) -> arp;
entry[1] -> Lanes($ip, $one, $port0, $port1) -> arp;
entry[2] -> Lanes($ip, $two, $port0, $port1) -> arp;

// == The hosts ==

from_lan :: FromDevice($lan) -> hosts :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
to_lan :: Null -> ToDevice($lan);
lan_arp :: ARPQuerier($lan_ip, $lan:eth) -> to_lan;
hosts[0] -> ARPResponder($lan_ip $lan:eth) -> to_lan;
hosts[1] -> [1] lan_arp;
hosts[2] -> Strip(14) -> CheckIPHeader -> DecIPTTL -> [0] entry;
hosts[3] -> Discard;

// Answers, which have not gone through the function.
packets[1] -> GetIPAddress(16) -> DecIPTTL -> lan_arp;
packets[2] -> Discard;
