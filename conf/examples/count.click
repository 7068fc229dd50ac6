// Creates packets as fast as it can, counts them, and discards them: the smallest complete graph.
//
//   castanet run conf/examples/count.click
//
// It prints
//
//   counted 1000000 packets, 60000000 bytes

InfiniteSource(LENGTH 60, LIMIT 1000000, BURST 32, STOP true) -> seen :: Counter -> Discard;

DriverManager(wait_stop, print "counted $(seen.count) packets, $(seen.byte_count) bytes");
