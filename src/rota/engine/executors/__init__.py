"""Executors: where tasks run. A worker has one of each kind that its jobs ask for."""
