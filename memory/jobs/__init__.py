"""Work that happens after a reply: the outbox, and its listing."""
