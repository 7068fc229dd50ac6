elementclass M { elementclass N X; input -> N -> output }
elementclass X Y; A -> M -> X -> N;
