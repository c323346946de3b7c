"""Tools that contributors run; nothing of this is installed."""
