"""Clients that speak the OpenAI protocol, and keep a conversation of their own.

conversation reads what they sent, identity finds which stored one it carries on, reconcile says what of it is new, and
arrival stores that; prompt puts the memory into their own messages.  relay passes on what needs no memory.
The turn itself is everyone's: see memory.turn.
"""
