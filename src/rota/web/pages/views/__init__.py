"""The pages, one module each: what it reads, what it shows of that, and what can be done on it."""
