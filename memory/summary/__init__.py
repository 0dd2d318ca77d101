"""The summary: what stands in for the messages that are no longer sent.

summaries   versions, and what callers do with them
updates     the mini model brings a summary up to date; previews
backlog     what was imported and has no summary
digest      one call of it                  compare  several prompts on one conversation
"""
