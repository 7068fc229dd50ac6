Idle -> c :: Counter -> Discard;
