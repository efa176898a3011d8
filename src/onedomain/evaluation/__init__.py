"""Scores of answers, from probabilities to calibration."""
