"""Contains one module for each kind of source. A server's driver is imported only by the module that needs it."""
