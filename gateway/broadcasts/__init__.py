"""What a shop writes to its customers unasked: to whom, at what cost, and each of them once."""
