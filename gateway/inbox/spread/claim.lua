-- ARGV: P, its number, worker, request id, how many, lease ms, '1' for a repeat. A shard gives out conversations: {ms until
-- something is due or -1, then of each: conversation, token, ms it was ready}. Tenants take turns.
local P, number, want, lease, now = ARGV[1], ARGV[2], tonumber(ARGV[5]), tonumber(ARGV[6]), now_ms()
looked(P, now)
local mine, found = ':' .. ARGV[3] .. ':' .. ARGV[4], {}
if ARGV[7] == '1' then -- what the lost answer held
  for _, conv in ipairs(redis.call('ZRANGE', P .. ':lease', 0, -1)) do
    local h = redis.call('HGET', P .. ':held', conv)
    if h and string.sub(h, -#mine) == mine then found[#found + 1] = {conv, h, 0} end
  end
end
local due = redis.call('ZRANGEBYSCORE', P .. ':due', '-inf', now, 'WITHSCORES', 'LIMIT', 0, 200)
for i = 1, #due, 2 do
  redis.call('ZREM', P .. ':due', due[i])
  make_ready(P, due[i], due[i + 1])
end
local ended = redis.call('ZRANGEBYSCORE', P .. ':lease', '-inf', now, 'WITHSCORES', 'LIMIT', 0, 200)
for i = 1, #ended, 2 do
  redis.call('ZREM', P .. ':lease', ended[i])
  redis.call('HDEL', P .. ':held', ended[i])
  redis.call('ZREM', P .. ':again', ended[i])
  make_ready(P, ended[i], ended[i + 1])
end
while #found < want do
  local tenant = redis.call('LPOP', P .. ':tenants')
  if not tenant then break end
  local key = P .. ':ready:' .. tenant
  local conv, since = unpack(redis.call('ZPOPMIN', key))
  if redis.call('ZCARD', key) > 0 then redis.call('RPUSH', P .. ':tenants', tenant) end
  if conv then
    local token = number .. ':' .. now .. mine
    redis.call('ZADD', P .. ':lease', now + lease, conv)
    redis.call('HSET', P .. ':held', conv, token)
    found[#found + 1] = {conv, token, math.max(0, math.floor(now - tonumber(since)))}
  end
end
if #found >= want and redis.call('EXISTS', P .. ':tenants') == 1 then wake(P) end
local next_due = redis.call('ZRANGE', P .. ':due', 0, 0, 'WITHSCORES')[2]
return {next_due and math.max(0, math.ceil(tonumber(next_due) - now)) or -1, found}
