// Copies each packet to two outputs. The copies share their bytes until an element changes one, so
// that a copy costs almost nothing.
//
//   castanet run conf/examples/tee.click
//
// It prints
//
//   left:    5 | 68656c6c 6f
//   right:    3 | 6c6c6f

InfiniteSource(DATA "hello", LIMIT 1, STOP true) -> copies :: Tee(2);

copies[0] -> Print(left) -> Discard;
copies[1] -> Strip(2) -> Print(right) -> Discard;
