"""The shape of every request and response.  Whether a thing exists or may be done is for the services to say.

Requests load into values that the services take; responses are dumped from values that they return.
"""
