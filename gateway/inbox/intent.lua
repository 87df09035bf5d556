-- ARGV: P, conversation, token, lease ms, outbox, then the limits. The right to send, asked for right before the first
-- byte: -1 when somebody else holds the conversation by now, else the milliseconds to wait before asking again; 0: go.
-- The record says what is about to go out; it is not written as long as there is to wait.
local P, conv = ARGV[1], ARGV[2]
looked(P, now_ms())
if redis.call('HGET', hash(conv), 'h') ~= ARGV[3] then return -1 end
redis.call('ZADD', P .. ':lease', now_ms() + tonumber(ARGV[4]), conv)
local wait = pace(6)
if wait == 0 then redis.call('HSET', hash(conv), 'o', ARGV[5]) end
return wait
