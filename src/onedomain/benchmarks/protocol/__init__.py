"""Runs on a benchmark: what is asked for, trained, scored and adapted to."""
