"""What a shop wrote down for its bot, in `CONFIG_DIR/knowledge/<tenant>/`: followed while everything runs, and found by
the one search."""
