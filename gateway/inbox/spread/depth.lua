-- ARGV: P. What is marked there, at one moment: {ready, due, leased, ms the oldest ready conversation has waited}.
local P, ready, oldest = ARGV[1], 0, nil
for _, tenant in ipairs(redis.call('LRANGE', P .. ':tenants', 0, -1)) do
  local key = P .. ':ready:' .. tenant
  ready = ready + redis.call('ZCARD', key)
  local since = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
  if since and (not oldest or since < oldest) then oldest = since end
end
local waited = oldest and math.max(0, math.floor(now_ms() - oldest)) or 0
return {ready, redis.call('ZCARD', P .. ':due'), redis.call('ZCARD', P .. ':lease'), waited}
