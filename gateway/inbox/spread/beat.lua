-- ARGV: P, lease ms, then conversation, token of each held. Extends the leases still ours; returns the others' positions.
local P, now, lost = ARGV[1], now_ms(), {}
looked(P, now)
for i = 3, #ARGV, 2 do
  if redis.call('HGET', P .. ':held', ARGV[i]) == ARGV[i + 1] then
    redis.call('ZADD', P .. ':lease', now + tonumber(ARGV[2]), ARGV[i])
  else
    lost[#lost + 1] = (i - 3) / 2
  end
end
return lost
