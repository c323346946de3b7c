"""Answers requests, by subject: each module holds a part of the table of routes and the functions that answer it."""
