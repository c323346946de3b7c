"""The supervisor: a small parent process that keeps workers running, and replaces one that dies, is stuck or leaks.

It imports nothing else of Rota and no library, so that it stays small and has little to fail at.
"""
