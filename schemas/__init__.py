"""Shape and limits of every request and response.

Requests load into values that the engine takes; responses are dumped from values that it returns. The engine checks
that a thing exists, and that the caller may have it done.
"""
