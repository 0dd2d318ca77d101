"""Long-term memory: what goes with a person from one conversation to the next, each kind a document of the store.

profile     who the person is
head        what a prompt's head shows of the documents
when        when a kind is written
"""
