"""Programs of other people, as their packages are, at a Recap: what works, in the table of docs/clients.md.

`make test-programs` installs them beside Recap, for some need other versions of its own packages, and runs each of them
in a process of its own against a served Recap, whose model server is scripted. It is no part of .ci/run: it
installs for minutes.
"""
