"""Access: who may call, whose data they see, and how much they may use."""
