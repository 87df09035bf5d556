-- ARGV: P. Who was woken has no place left: others may have one.
wake(ARGV[1])
return 1
