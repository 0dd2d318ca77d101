"""Protocols of other programs, over the same turn and memory: each request becomes a turn, and its answer an answer.

client_requests                   how a request of another protocol becomes a turn
openai, anthropic                 OpenAI's Chat Completions, with models and embeddings; Anthropic's Messages
responses, stored_responses       OpenAI's Responses
conversations                     OpenAI's Conversations; items of both as messages
mcp, mcp_server, mcp_tools        the Model Context Protocol, which is imported with the first message
"""
