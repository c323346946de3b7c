"""The dashboard: pages made by the server, which read by the inspector and act through the operations of the API."""
