// Serves two queues in turn, so that a busy sender cannot delay a modest one.
//
//   castanet run --simtime conf/examples/round-robin.click
//
// It prints
//
//   busy … modest …

RatedSource(LENGTH 60, RATE 1000, STOP false) -> Paint(1) -> Queue(100) -> [0] turns :: RoundRobinSched;
RatedSource(LENGTH 60, RATE 100, STOP false) -> Paint(2) -> Queue(100) -> [1] turns;

turns -> RatedUnqueue(RATE 200) -> who :: CheckPaint(1);

who[0] -> busy :: Counter -> Discard;
who[1] -> modest :: Counter -> Discard;

DriverManager(wait 5s, print "busy $(busy.count) modest $(modest.count)", stop);
