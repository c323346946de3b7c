"""Implements what sources on SQL tables share: locks, fenced writes and side records, in short transactions."""
