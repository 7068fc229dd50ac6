x :: A; x :: B(1); x(2); A :: B; A -> a, b;
