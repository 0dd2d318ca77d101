"""From files to passages, and from passages to rows."""
