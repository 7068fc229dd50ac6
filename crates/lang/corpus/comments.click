// first
a :: A; // trailing
/* block
   comment */ b :: B;
a /* in */ -> // here
 b;
