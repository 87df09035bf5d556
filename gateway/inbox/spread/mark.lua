-- ARGV: P, then conversation, ms until it is to be looked at, '1' where a mark that is there already stays as it is.
local P, now = ARGV[1], now_ms()
for i = 2, #ARGV, 3 do
  local marked = ARGV[i + 2] == '1' and redis.call('ZSCORE', P .. ':due', ARGV[i])
  if not marked then mark_in(P, ARGV[i], tonumber(ARGV[i + 1]), now) end
end
return 1
