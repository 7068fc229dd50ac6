# 100 "foo"
a :: A;
# line 7 "bar baz"
x -> y;
# 3
z
# nonsense
