// Answers the ARP requests of a pcap file for every address in 10.0.0.0/16.
//
//   castanet run conf/examples/arp.click in=conf/sample.pcap
//
// It prints each reply, and then
//
//   answered 3 requests

define($in conf/sample.pcap, $mac 02:00:00:00:00:01);

FromDump($in, STOP true)
    -> Classifier(12/0806 20/0001)
    -> ARPResponder(10.0.0.0/16 $mac)
    -> ARPPrint(reply)
    -> answered :: Counter
    -> Discard;

DriverManager(wait_stop, print "answered $(answered.count) requests");
