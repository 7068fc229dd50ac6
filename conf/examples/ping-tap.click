// Simulates a host behind an interface of this machine: answers ARP and ping.
// It needs root. In a second terminal: ping 10.9.9.2
//
//   castanet run conf/examples/ping-tap.click

tap :: KernelTap(10.9.9.1/24);

tap -> kind :: Classifier(12/0806 20/0001, 12/0800, -);
kind[0] -> ARPResponder(10.9.9.2 02:00:00:00:09:02) -> tap;
kind[1] -> CheckIPHeader(14)
    -> pings :: IPClassifier(dst host 10.9.9.2 and icmp type echo, -);
kind[2] -> Discard;

pings[0] -> ICMPPingResponder -> EtherMirror -> tap;
pings[1] -> Discard;
