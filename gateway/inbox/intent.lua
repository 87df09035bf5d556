-- ARGV: P, conversation, token, lease ms, outbox, then the limits. The right to send, asked for right before the first
-- byte: -1 when somebody else holds the conversation by now, else the milliseconds to wait before asking again; 0: go.
-- The record says what is about to go out; it is not written as long as there is to wait. A lease that may be half over
-- begins anew; a token begins with when it was given.
local P, conv, token, lease, now = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), now_ms()
local c = hash(conv)
if redis.call('HGET', c, 'h') ~= token then return -1 end
if now - tonumber(string.match(token, '^%d+')) >= lease / 2 then redis.call('ZADD', P .. ':lease', now + lease, conv) end
local wait = pace(6, now)
if wait == 0 then redis.call('HSET', c, 'o', ARGV[5]) end
return wait
