"""The store: JSON items under a namespace and a key, each with its owner, for applications and for the engine's kinds.

items       the door for callers: one list of operations, one transaction
documents   reading and writing items inside a transaction, with history and sources
finding     items by words and meaning
filters     conditions on values, as SQL
values      what passes between them
"""
