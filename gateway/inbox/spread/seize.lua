-- ARGV: P, conversation, token, lease ms. Takes one conversation out of turn, unless somebody holds it (0).
local P, conv = ARGV[1], ARGV[2]
if redis.call('ZSCORE', P .. ':lease', conv) then return 0 end
redis.call('ZREM', P .. ':due', conv)
unready(P, conv)
redis.call('ZADD', P .. ':lease', now_ms() + tonumber(ARGV[4]), conv)
redis.call('HSET', P .. ':held', conv, ARGV[3])
return 1
