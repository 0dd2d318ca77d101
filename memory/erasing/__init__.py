"""Erasing: a message, facts, a session, a person.

erasing    the four doors, one receipt for all, and the job that leaves no copy in the database's files
message    what one message leaves in its session when it goes: its place, and a summary made without it
"""
