// The client C of SplitBox on two devices, for two processors and two lanes.
//
// It hands the packets that the function lets pass to the hosts behind `lan`, which have 10.2.0.1 as
// their gateway. Their answers go to the entry by `dev`, as plain packets.
//
//   castanet run conf/splitbox/client.click lan=eth0 dev=eth1 file=parties/client.splitbox key=client.key -j 2

define($lan eth0, $lan_ip 10.2.0.1,
       $dev eth1, $ip 10.7.0.2,
       $entry 10.7.0.1, $one 10.7.0.11, $two 10.7.0.12,
       $file client.splitbox, $key splitbox.key, $port0 7000, $port1 7001);

client :: SplitBoxClient($file, KEY_FILE $key);

// == The other parties ==

FromDevice($dev) -> frames :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
to_dev :: Null -> ToDevice($dev);
arp :: ARPQuerier($ip, $dev:eth) -> to_dev;
frames[0] -> ARPResponder($ip $dev:eth) -> to_dev;
frames[1] -> [1] arp;
frames[2] -> Strip(14)
    -> CheckIPHeader
    -> packets :: IPClassifier(dst host $ip and (dst udp port $port0 or dst udp port $port1), -);
frames[3] -> Discard;
packets[1] -> Discard;

packets[0] -> StripIPHeader -> Strip(8) -> client;
// Rows and permissions belong to no lane.
client[1] -> UDPIPEncap($ip, $port0, $entry, $port0) -> arp;
client[2] -> UDPIPEncap($ip, $port0, $one, $port0) -> arp;
client[3] -> UDPIPEncap($ip, $port0, $two, $port0) -> arp;

// == The hosts ==

FromDevice($lan) -> hosts :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
to_lan :: Null -> ToDevice($lan);
lan_arp :: ARPQuerier($lan_ip, $lan:eth) -> to_lan;
hosts[0] -> ARPResponder($lan_ip $lan:eth) -> to_lan;
hosts[1] -> [1] lan_arp;
hosts[2] -> Strip(14) -> CheckIPHeader -> DecIPTTL -> SetIPAddress($entry) -> arp;
hosts[3] -> Discard;

client[0] -> GetIPAddress(16) -> DecIPTTL -> lan_arp;
