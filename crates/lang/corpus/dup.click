a :: A; b :: B; a -> b; a -> b; a [1] -> b; a -> [1] b;
