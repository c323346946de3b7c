"""Sets Django up when it is imported: a child process of `executor="process"` loads it before a task's module."""

import django

django.setup()
