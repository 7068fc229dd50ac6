a :: A(café) // naïve
