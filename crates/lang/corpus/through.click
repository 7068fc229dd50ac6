A -> { input -> output; } -> B; A -> ( -> ) -> B;
