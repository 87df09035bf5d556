-- ARGV: conversation, token, pause ms, '1' to leave this try uncounted, why, '1' when an arrival ends the pause, the outbox to
-- record or ''. Gives the conversation back: ms until it is to be looked at, -1: it was lost.
local conv, now, pause = ARGV[1], now_ms(), tonumber(ARGV[3])
local c = hash(conv)
local h, o, n = unpack(redis.call('HMGET', c, 'h', 'o', 'n'))
if h ~= ARGV[2] then return -1 end
redis.call('HDEL', c, 'h', 'u')
if ARGV[7] ~= '' then
  o = ARGV[7]
  redis.call('HSET', c, 'o', o)
end
if ARGV[4] == '1' then redis.call('HINCRBY', c, 'a', -1) end
if not o then redis.call('HDEL', c, 'n') end -- nothing was sent: the next try may form its batch anew
if ARGV[6] == '1' then
  redis.call('HSET', c, 'w', 1)
  if redis.call('LLEN', queue(conv)) > (tonumber(n) or 0) then pause = 0 end
else
  redis.call('HDEL', c, 'w')
end
redis.call('HSET', c, 'p', now + pause, 'r', ARGV[5])
return pause
