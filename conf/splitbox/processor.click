// A processor B of SplitBox on a device, for two lanes.
//
//   castanet run conf/splitbox/processor.click dev=eth0 ip=10.7.0.11
//       file=parties/processor-1.splitbox key=one.key -j 2
//
// It answers each lane from the port at which it listens.

define($dev eth0, $ip 10.7.0.11, $client 10.7.0.2,
       $file processor-1.splitbox, $key splitbox.key, $port0 7000, $port1 7001);

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

packets[0] -> StripIPHeader -> Strip(8)
    -> processor :: SplitBoxProcessor($file, KEY_FILE $key)
    -> lane :: PaintSwitch;
lane[0] -> UDPIPEncap($ip, $port0, $client, $port0) -> arp;
lane[1] -> UDPIPEncap($ip, $port1, $client, $port1) -> arp;
