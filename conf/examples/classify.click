// Classifies the frames of a pcap file by the bytes at fixed offsets, and counts each kind.
//
//   castanet run conf/examples/classify.click in=conf/sample.pcap
//
// It prints
//
//   3 ARP requests, 3 ARP replies, 95 IPv4, 0 others

define($in conf/sample.pcap);

FromDump($in, STOP true)
    -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);

kind[0] -> requests :: Counter -> Discard;
kind[1] -> replies :: Counter -> Discard;
kind[2] -> ipv4 :: Counter -> Discard;
kind[3] -> others :: Counter -> Discard;

DriverManager(wait_stop,
    print "$(requests.count) ARP requests, $(replies.count) ARP replies, $(ipv4.count) IPv4, $(others.count) others");
