"""Crash and load tests, run by `make test-faults`: minutes each, on loopback alone, with a scripted model.

What they do is set by environment variables, whose defaults are what is promised:
FAULTS_CYCLES (200 kill -9), FAULTS_CLIENTS (300 at once), FAULTS_TURNS (24,000), FAULTS_SEED (1).  Each prints its
figures: `make test-faults` shows them.
"""
