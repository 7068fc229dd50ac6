elementclass F { $a, KEY $k, __REST__ $r | input -> X($a/$k/$r) -> output }
A -> F(1, 2, KEY v w, 3) -> B;
