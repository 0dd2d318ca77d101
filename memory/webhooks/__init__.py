"""Webhooks: addresses that events are delivered to.

webhooks     administration, on behalf of callers
deliveries   lanes, tries, pauses, and the request to the address
"""
