"""What tests of Rota, and of code that uses it, are made with."""
