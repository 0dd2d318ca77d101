"""The shape of every request and response.  Shape only: whether a thing exists or may be done is the engine's to say.

Requests load into values the engine takes, responses are dumped from values it gives.
"""
