"""Answers of `why`, for a schedule and for a job."""
