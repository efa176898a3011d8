"""Domains that are made, not downloaded."""
