a :: A -> ; -> b [0] ] } ) || ... | $x : = - > . ~ ~x elementclass define require provide
