-- ARGV: the limits. Ms until all of them let one more pass; 0: it has passed, and is counted.
return pace(1, now_ms())
