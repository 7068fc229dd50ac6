elementclass Q { $a | input -> X($a) -> output || input -> Y -> output; input [1] -> Z -> [1] output || ... }
A -> Q(1) -> B; a2 :: A => [0,1] Q [0,1] => b2 :: B;
