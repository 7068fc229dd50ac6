elementclass Q Queue; q :: Q(5); A -> q -> Q -> B;
