"""Defines tasks: functions under names, with their options, their arguments and the registry."""
