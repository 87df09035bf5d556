-- ARGV: P, conversation, token, the name under which its messages are put, the conversation that they belong to by now,
-- seconds an alias is kept. Moves the batch to the end of that one's queue, and what waits behind it unless others' may
-- be among it; what is put under that name from now on goes there. Nothing waits a second time. 0: the claim was lost.
local P, conv, token, origin, to, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], now_ms()
local c, q = hash(conv), queue(conv)
local h, n, x = unpack(redis.call('HMGET', c, 'h', 'n', 'x'))
if h ~= token then return 0 end
local length = redis.call('LLEN', q)
local count = origin == conv and length or tonumber(n)
local entries = redis.call('LRANGE', q, 0, count - 1)
if to == origin then
  redis.call('DEL', alias(origin))
else
  redis.call('SET', alias(origin), to, 'EX', ARGV[6])
  redis.call('DEL', alias(to)) -- of a time when it was the other way round
end
local there = hash(to)
if redis.call('EXISTS', there) == 0 then redis.call('HSET', there, 'f', now, 'l', now, 'd', 0, 'm', 0, 'x', x or TRIES) end
for _, entry in ipairs(entries) do redis.call('RPUSH', queue(to), entry) end
come(P, to, now, now, false, unpack(redis.call('HMGET', there, 'p', 'h', 'w')))
settle(P, conv, count, length, now)
return 1
