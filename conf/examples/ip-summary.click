// Prints a line for each IPv4 packet of a pcap file: addresses, ports, protocol, length.
//
//   castanet run conf/examples/ip-summary.click in=conf/sample.pcap
//
// It prints
//
//   !IPSummaryDump 1.3
//   !data ip_src sport ip_dst dport ip_proto ip_len
//   10.0.1.2 50000 10.0.3.2 80 T 40

define($in conf/sample.pcap);

FromDump($in, STOP true)
    -> Classifier(12/0800)
    -> CheckIPHeader(14)
    -> ToIPSummaryDump(-, CONTENTS ip_src sport ip_dst dport ip_proto ip_len);
