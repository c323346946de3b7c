"""Settings: what they are, where they are said (defaults, rota.yaml, ROTA_* variables, code), and which one counts."""
