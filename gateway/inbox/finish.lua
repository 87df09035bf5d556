-- ARGV: P, conversation, token, reason of death or '', session or '', its TTL in ms (0: none), the rev it was made from,
-- index of sessions, member there, score there. Drops the batch, writes the session and releases the conversation.
-- Returns {1}, {0} when the claim was lost, {2, stored session} when the session changed meanwhile.
local P, conv, token, reason, session, rev = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[7])
local c, q, now = hash(conv), queue(conv), now_ms()
local h, n, a = unpack(redis.call('HMGET', c, 'h', 'n', 'a'))
if h ~= token then return {0} end
if session ~= '' then
  if session_rev(conv) ~= rev then return {2, redis.call('GET', conv) or ''} end
  session_put(conv, session, ARGV[6])
  session_mark(ARGV[8], ARGV[9], ARGV[10])
end
if reason ~= '' then entomb(P, conv, tonumber(n), reason, tonumber(a), now) end
redis.call('LTRIM', q, tonumber(n), -1)
settle(P, conv, now)
return {1}
