a/b :: A; a@1 :: B; A@3 :: A; A; A -> 12 :: B; x//y
:: B;
