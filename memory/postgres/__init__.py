"""Long-term memory in PostgreSQL, for more than one machine. Loaded only where LONGTERM_URL names a database."""
