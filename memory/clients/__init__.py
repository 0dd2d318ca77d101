"""Clients that speak the OpenAI protocol, and keep a conversation of their own.  The turn itself is everyone's."""
