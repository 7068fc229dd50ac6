A -> { -> { input -> x :: X -> output } -> { -> Y -> } -> } -> B;
