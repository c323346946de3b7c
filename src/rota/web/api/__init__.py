"""What is asked over HTTP, by subject: each module holds a part of the table of routes and what answers it."""
