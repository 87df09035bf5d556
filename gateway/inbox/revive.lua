-- ARGV: P, conversation. Its queue and its state are here, and no mark of it, as after a backup was put back: it is marked
-- again. Who had it in hand is gone; what they had begun goes on with the next try. How many messages wait.
local P, conv, now = ARGV[1], ARGV[2], now_ms()
local c = hash(conv)
local waiting = redis.call('LLEN', queue(conv))
if waiting == 0 then
  redis.call('DEL', c)
  return 0
end
redis.call('HDEL', c, 'h')
mark(P, conv, tonumber(redis.call('HGET', c, 'p')) or now, now)
return waiting
