-- ARGV: P, lease ms, then conversation, token of each held. Extends the leases still ours; returns the others' positions.
local P, lease, now, lost = ARGV[1], tonumber(ARGV[2]), now_ms(), {}
looked(P, now)
for i = 3, #ARGV, 2 do
  if redis.call('HGET', hash(ARGV[i]), 'h') == ARGV[i + 1] then
    redis.call('ZADD', P .. ':lease', now + lease, ARGV[i])
  else
    lost[#lost + 1] = (i - 3) / 2
  end
end
return lost
