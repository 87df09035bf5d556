-- ARGV: the limits. 1 when something that can be left out (a typing sign) may go out now; then it is counted.
return pace(1, now_ms()) == 0 and 1 or 0
