a :: A ~> b :: B; a ~IP> c :: C; a ~/TCP> c; c ~ d
