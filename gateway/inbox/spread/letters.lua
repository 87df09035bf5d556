-- ARGV: conversation, token. What is to be buried of the holder's batch: {tries, what an earlier batch left to deliver if
-- nothing waits behind this one, else '', message...}; false: the claim was lost.
local c, q = hash(ARGV[1]), queue(ARGV[1])
local h, n, a, k = unpack(redis.call('HMGET', c, 'h', 'n', 'a', 'k'))
if h ~= ARGV[2] then return false end
local letters = {tonumber(a), redis.call('LLEN', q) <= tonumber(n) and k or ''}
for _, entry in ipairs(redis.call('LRANGE', q, 0, tonumber(n) - 1)) do letters[#letters + 1] = string.match(entry, '\n(.*)$') end
return letters
