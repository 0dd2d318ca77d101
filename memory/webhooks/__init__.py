"""Webhooks: addresses that are told of events."""
