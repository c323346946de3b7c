"""Rota beside what people use instead: `make bench`, or `python -m bench --help`."""
