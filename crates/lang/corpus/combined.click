a/InfiniteSource@3 :: InfiniteSource; a/Queue@4 :: Queue; b/Discard@2 :: Discard;
link1 :: RouterLink(a t ToDevice, "eth0, BURST 8", b FromDevice@1 FromDevice, eth1);
link2 :: RouterLink(a); a/Queue@4 -> link1 -> b/Discard@2; a/InfiniteSource@3 -> a/Queue@4; link2 -> [1]link1;
elementclass A { $x, K $y | input -> B($x) -> output || input, input[1] => D -> output } elementclass S A;
S(1, K 2) -> { -> C -> } -> ( -> E -> ) -> x, y :: A(3);
