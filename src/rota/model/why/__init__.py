"""Builds the answers of `why`, for a schedule and for a job."""
