-- ARGV: ms, then the limits. A platform said "not before": all workers keep to it.
local now, pause = now_ms(), tonumber(ARGV[1])
for i = 2, #ARGV, 3 do
  local full = now + pause + tonumber(ARGV[i + 1]) * (tonumber(ARGV[i + 2]) - 1)
  if full > tonumber(redis.call('GET', ARGV[i]) or 0) then
    redis.call('SET', ARGV[i], full, 'PX', math.ceil(full - now) + 1000)
  end
end
return 1
