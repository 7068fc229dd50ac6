define($s $s$t, $t $s$s) a :: A($s)
