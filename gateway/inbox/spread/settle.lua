-- ARGV: P, conversation, token, ms until it is to be looked at or -1. Ends a lease, if it is still this one.
local P, conv, wait, now = ARGV[1], ARGV[2], tonumber(ARGV[4]), now_ms()
if redis.call('HGET', P .. ':held', conv) ~= ARGV[3] then return 0 end
local again = redis.call('ZSCORE', P .. ':again', conv)
redis.call('HDEL', P .. ':held', conv)
redis.call('ZREM', P .. ':again', conv)
redis.call('ZREM', P .. ':lease', conv)
if wait < 0 and again then wait = math.max(0, tonumber(again) - now) end
if wait >= 0 then mark(P, conv, now + wait, now) end
return 1
