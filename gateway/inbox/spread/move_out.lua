-- ARGV: conversation, token, how many of its queue's first entries stand at the new place by now, '1' when whatever waits is
-- to go there, the new place, seconds an alias is kept. {2, tries allowed, entry...}: these are still to be brought there; {1, ms
-- until it is to be looked at or -1}: they have gone, and with '1' what is put under this name from now on goes there at
-- once; {0}: the claim was lost.
local conv, brought, now = ARGV[1], tonumber(ARGV[3]), now_ms()
local c, q = hash(conv), queue(conv)
local h, n, x = unpack(redis.call('HMGET', c, 'h', 'n', 'x'))
if h ~= ARGV[2] then return {0} end
local count = ARGV[4] == '1' and redis.call('LLEN', q) or tonumber(n)
local left = redis.call('LRANGE', q, brought, count - 1)
if #left > 0 then return {2, tonumber(x) or 5, unpack(left)} end
if ARGV[4] == '1' then redis.call('SET', alias(conv), ARGV[5], 'EX', ARGV[6]) end
for _, entry in ipairs(redis.call('LRANGE', q, 0, brought - 1)) do
  redis.call('DEL', 'cc:moved:{' .. conv .. '}:' .. redis.sha1hex(entry)) -- it may come back
end
redis.call('LTRIM', q, brought, -1)
return {1, go_on(conv, now)}
