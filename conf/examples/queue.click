// Fills a queue faster than it is emptied: the queue stays full, and packets that find no room are
// dropped and counted.
//
//   castanet run --simtime conf/examples/queue.click
//
// It prints
//
//   100 waiting of at most 100, … dropped, … sent

RatedSource(LENGTH 60, RATE 1000, STOP false)
    -> waiting :: Queue(100)
    -> RatedUnqueue(RATE 400)
    -> sent :: Counter
    -> Discard;

DriverManager(wait 2s,
    print "$(waiting.highwater_length) waiting of at most $(waiting.capacity), $(waiting.drops) dropped, $(sent.count) sent",
    stop);
