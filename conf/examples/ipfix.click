// Exports the flows of a pcap file as IPFIX messages, which leave by the exporter's second output as
// payloads of UDP.
//
//   castanet run conf/examples/ipfix.click
//
// It prints
//
//   64 flow records in 3 packets, 3787 bytes
//
// With COLLECTOR 192.0.2.2 the exporter sends the messages itself, and needs no second output.

FromDump(conf/sample.pcap, STOP true) -> e :: IPFIXExporter -> Discard;

e[1] -> UDPIPEncap(192.0.2.1, 4739, 192.0.2.2, 4739) -> messages :: Counter -> Discard;

DriverManager(wait_stop, write e.flush,
    print "$(e.exported_records) flow records in $(messages.count) packets, $(messages.byte_count) bytes");
