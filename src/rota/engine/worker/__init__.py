"""Claims jobs, has executors run them, keeps their leases and settles them."""
