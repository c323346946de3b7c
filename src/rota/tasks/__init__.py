"""Functions under names: tasks, their options, their arguments, and the registry."""
