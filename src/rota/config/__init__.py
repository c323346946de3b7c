"""Reads settings from defaults, rota.yaml, ROTA_* variables and code, and decides which value applies."""
