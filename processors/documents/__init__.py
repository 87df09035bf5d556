"""A shop's files as passages that can be found: read, bounded, cut where their meaning allows it. Pure, but for reading
the file itself."""
