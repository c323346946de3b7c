"""Reads the schedules of other systems, and of `rota export`, and turns them into schedules of Rota."""
