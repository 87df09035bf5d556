-- ARGV: conversation, token, '' or how it died ('dead', 'killed'), session or '', its TTL in ms (0: none), the rev it was
-- made from, what the next batch is to deliver or ''. Drops the batch and writes the session. Returns {1, ms until it is to
-- be looked at or -1}, {0} when the claim was lost, {2, stored session} when the session changed meanwhile.
local conv, token, died, session, carry, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[7], now_ms()
local c, q = hash(conv), queue(conv)
local h, n = unpack(redis.call('HMGET', c, 'h', 'n'))
if h ~= token then return {0} end
if died == '' and carry ~= '' and redis.call('LLEN', q) <= tonumber(n) then return {0} end -- nobody could deliver it
if session ~= '' then
  if session_rev(conv) ~= tonumber(ARGV[6]) then return {2, redis.call('GET', conv) or ''} end
  session_put(conv, session, ARGV[5])
end
redis.call('LTRIM', q, tonumber(n), -1)
if died == 'dead' or (died == '' and carry == '') then
  redis.call('HDEL', c, 'k')
elseif died == '' then
  redis.call('HSET', c, 'k', carry)
end
return {1, go_on(conv, now)}
