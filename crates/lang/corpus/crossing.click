a :: A; b :: B; c :: C; a => b, c; a [2, 3] => [1] c, [1] b; b -> c -> a;
