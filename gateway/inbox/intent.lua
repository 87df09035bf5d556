-- ARGV: P, conversation, token, lease ms, outbox. The right to send, asked for right before the first byte: 1, or 0 when
-- somebody else holds the conversation by now. The record says what is about to go out.
local P, conv = ARGV[1], ARGV[2]
if redis.call('HGET', hash(conv), 'h') ~= ARGV[3] then return 0 end
redis.call('HSET', hash(conv), 'o', ARGV[5])
redis.call('ZADD', P .. ':lease', now_ms() + tonumber(ARGV[4]), conv)
return 1
