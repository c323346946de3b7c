"""A project whose own tests are run by Django's test runner, in a process of their own."""
