"""Messages in, answers out."""
