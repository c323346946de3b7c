"""Checkers: plain functions over a recorded history, each the proof of one promise. An empty list means it held."""
