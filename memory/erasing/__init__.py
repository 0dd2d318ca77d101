"""Erase sessions, people, facts and items, and keep sessions only as long as a policy says."""
