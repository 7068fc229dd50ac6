define($n 1)
Idle -> Counter -> ToDump(a); InfiniteSource -> ss :: StaticSwitch($n);
ss[0] -> ToDump(c); ss[1] -> Queue -> rr :: StrideSched(1, 2) -> p :: StaticPullSwitch(0) -> ToDump(b);
Idle -> [1]rr; Idle -> [1]p; f :: FromDevice(e) -> Strip(14) -> c :: CheckIPHeader(OFFSET 0) -> Discard;
c[1] -> Classifier(12/0800, -) -> Null -> EtherEncap(1, 2, 3) -> ARPQuerier(a, b) -> ToDevice(e);
