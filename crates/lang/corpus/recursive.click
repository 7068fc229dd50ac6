elementclass R { input -> R -> output } elementclass P { Q } elementclass Q { P } R -> P
