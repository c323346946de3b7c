"""The kinds of sources: one module each. A server's driver is imported only by the module that needs it."""
