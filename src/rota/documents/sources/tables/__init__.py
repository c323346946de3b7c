"""What sources on SQL tables share: locks, fenced writes and side records, in transactions that lock their rows."""
