elementclass Meters { input -> Meter($a) -> Shaper($b) -> output }
elementclass Meters_Replacement { input -> Meter($b) -> SlowShaper($a, "$b") -> output }
elementclass Fork { input -> t :: Tee -> output; t[1] -> Queue -> [1]output }
elementclass Fork_Replacement { input -> Fork2($1) -> output; input -> [1]output }
elementclass Gone { input -> Null -> output }
elementclass Gone_Replacement { input -> output }
i :: I -> Null -> Meter(1) -> Shaper(2) -> t :: Tee -> Null -> D;
t[1] -> Queue -> D; D2; I -> Fork -> D;
