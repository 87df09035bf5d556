"""Lists over a tenant in `DATA_DIR/index/<tenant>.sqlite`: derived from the long-term files, made anew when gone."""
