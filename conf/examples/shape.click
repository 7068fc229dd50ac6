// Passes at most 100 packets a second, at any input rate: a queue, then a shaper that limits the
// rate at which packets are pulled.
//
//   castanet run --simtime conf/examples/shape.click
//
// It prints
//
//   after 10 seconds: … packets, shaped to 100 a second

RatedSource(LENGTH 60, RATE 1000, STOP false)
    -> waiting :: Queue(50)
    -> Shaper(100)
    -> Unqueue
    -> through :: Counter
    -> Discard;

DriverManager(wait 10s, print "after 10 seconds: $(through.count) packets, shaped to 100 a second", stop);
