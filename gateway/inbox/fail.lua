-- ARGV: P, conversation, token, pause ms, '1' to leave this try uncounted, why, '1' when an arrival ends the pause, the
-- outbox to record or ''. Gives the conversation back; 0: it was lost.
local P, conv, now = ARGV[1], ARGV[2], now_ms()
local c = hash(conv)
local h, o = unpack(redis.call('HMGET', c, 'h', 'o'))
if h ~= ARGV[3] then return 0 end
redis.call('HDEL', c, 'h')
if ARGV[8] ~= '' then
  o = ARGV[8]
  redis.call('HSET', c, 'o', o)
end
if ARGV[5] == '1' then redis.call('HINCRBY', c, 'a', -1) end
if not o then redis.call('HDEL', c, 'n') end -- nothing was sent: the next try may form its batch anew
redis.call('ZREM', P .. ':lease', conv)
local pause = tonumber(ARGV[4])
if ARGV[7] == '1' then
  redis.call('HSET', c, 'w', 1)
  -- What the pause was to wait for may have come before it began.
  if redis.call('LLEN', queue(conv)) > (tonumber(redis.call('HGET', c, 'n')) or 0) then pause = 0 end
else
  redis.call('HDEL', c, 'w')
end
redis.call('HSET', c, 'p', now + pause, 'r', ARGV[6])
mark(P, conv, now + pause, now)
return 1
