"""Defines alert rules, incidents and their messages: values and decisions, without any call."""
