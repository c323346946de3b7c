"""Rescues lost jobs, prunes, finishes changes of tenants, and repairs what a wrong clock has left."""
