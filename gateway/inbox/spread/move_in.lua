-- ARGV: conversation, shard, tries allowed, then entries that come from another one's queue. Each is taken once, however
-- often this is asked for within an hour. Returns {shard, ms until it is to be looked at or -1}.
local conv, now = ARGV[1], now_ms()
local c = hash(conv)
redis.call('DEL', alias(conv)) -- of a time when it was the other way round
if redis.call('EXISTS', c) == 0 then redis.call('HSET', c, 'f', now, 'l', now, 'd', 0, 'm', 0, 'x', ARGV[3], 's', ARGV[2]) end
for i = 4, #ARGV do
  if redis.call('SET', 'cc:moved:{' .. conv .. '}:' .. redis.sha1hex(ARGV[i]), 1, 'NX', 'EX', 3600) then
    redis.call('RPUSH', queue(conv), ARGV[i])
  end
end
local wait, p, w = 0, unpack(redis.call('HMGET', c, 'p', 'w'))
if redis.call('LLEN', queue(conv)) == 0 then
  redis.call('DEL', c)
  wait = -1
elseif held_since(c, now) then
  wait = -1
elseif p and tonumber(p) > now and not w then
  wait = math.ceil(tonumber(p) - now)
end
return {tonumber(redis.call('HGET', c, 's') or ARGV[2]), wait}
