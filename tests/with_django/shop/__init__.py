"""An installed app of Django, for tests."""
