"""Checks the recorded history of a simulation: one function for each guarantee. An empty list means that it held."""
