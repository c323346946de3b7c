"""Serves the dashboard: pages that the server makes. They read by the inspector and act by operations of the API."""
