// Filters a pcap file by rules, of which the first that matches counts, and keeps allowed packets.
//
//   castanet run conf/examples/filter.click in=conf/sample.pcap out=/dev/null
//
// It prints
//
//   kept 34 of 95

define($in conf/sample.pcap, $out filtered.pcap);

FromDump($in, STOP true)
    -> Classifier(12/0800)
    -> seen :: Counter
    -> MarkIPHeader(14)
    -> IPFilter(deny src net 10.0.2.0/24,
                allow tcp and dst port 80,
                allow udp and dst port 53,
                deny all)
    -> kept :: Counter
    -> ToDump($out);

DriverManager(wait_stop, print "kept $(kept.count) of $(seen.count)");
