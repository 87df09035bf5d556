-- ARGV: conversation. {shard or -1, ms until it is to be looked at or -1}, of a conversation that nobody holds or whose
-- holder is gone.
local c, now = hash(ARGV[1]), now_ms()
local wait = look_in(ARGV[1], now)
if wait < 0 then redis.call('DEL', c) else redis.call('HDEL', c, 'h', 'u') end
return {tonumber(redis.call('HGET', c, 's')) or -1, wait}
