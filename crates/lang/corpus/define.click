define($a 1, $b $a$a, $l x y z)
a :: A($b, ${a}x, ${c-def}, $c, ${l[1]}, "$a", '$a', $X);
