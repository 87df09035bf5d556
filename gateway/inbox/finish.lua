-- ARGV: P, conversation, token, reason of death or '', session or '', its TTL in ms (0: none), the rev it was made from,
-- index of sessions, member there, score there, what the next batch is to deliver (of a dead one: what was to be delivered
-- with it) or ''. Drops the batch, writes the
-- session and releases the conversation. Returns {1}, {0} when the claim was lost, {2, stored session} when the session changed meanwhile.
local P, conv, token, reason, session, rev = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[7])
local c, q, now = hash(conv), queue(conv), now_ms()
local h, n, a = unpack(redis.call('HMGET', c, 'h', 'n', 'a'))
if h ~= token then return {0} end
if reason == '' and ARGV[11] ~= '' and redis.call('LLEN', q) <= tonumber(n) then return {0} end -- nobody could deliver it
if session ~= '' then
  if session_rev(conv) ~= rev then return {2, redis.call('GET', conv) or ''} end
  session_put(conv, session, ARGV[6])
  session_mark(ARGV[8], ARGV[9], ARGV[10])
end
if reason ~= '' then entomb(P, conv, tonumber(n), reason, tonumber(a), now, ARGV[11]) end
redis.call('LTRIM', q, tonumber(n), -1)
if reason ~= '' or ARGV[11] == '' then redis.call('HDEL', c, 'k') else redis.call('HSET', c, 'k', ARGV[11]) end
settle(P, conv, now)
return {1}
