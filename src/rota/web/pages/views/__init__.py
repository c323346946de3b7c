"""Defines the pages, one module each: what it reads, what it shows, and the actions on it."""
