elementclass Queue { $a, $b | input -> X($a $b) -> output || ... }
A -> Queue(1, 2) -> B; A -> Queue(1) -> B;
