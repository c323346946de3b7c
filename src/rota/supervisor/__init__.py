"""Keeps workers running: a small parent process that replaces a worker that dies, is stuck or leaks.

It imports nothing else of Rota and no library, so that it stays small and has little to fail at.
"""
