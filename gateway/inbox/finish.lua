-- ARGV: P, conversation, token, reason of death or '', session or '', its TTL in ms (0: none), the rev it was made from,
-- index of sessions, member there, score there, what the next batch is to deliver (of a dead one: what was to be delivered
-- with it) or ''. Drops the batch, writes the
-- session and releases the conversation. Returns {1}, {0} when the claim was lost, {2, stored session} when the session changed meanwhile.
local P, conv, token, reason, session, rev, carry = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[7]), ARGV[11]
local c = hash(conv)
local h, n, a = unpack(redis.call('HMGET', c, 'h', 'n', 'a'))
if h ~= token then return {0} end
n = tonumber(n)
local length = redis.call('LLEN', queue(conv))
if reason == '' and carry ~= '' and length <= n then return {0} end -- nobody could deliver it
if session ~= '' then
  if session_rev(conv) ~= rev then return {2, redis.call('GET', conv) or ''} end
  session_put(conv, session, ARGV[6])
  session_mark(ARGV[8], ARGV[9], ARGV[10])
end
local now = (reason ~= '' or length > n) and now_ms() or 0
if reason ~= '' then entomb(P, conv, n, reason, tonumber(a), now, carry) end
if length > n then
  if reason ~= '' or carry == '' then redis.call('HDEL', c, 'k') else redis.call('HSET', c, 'k', carry) end
end
settle(P, conv, n, length, now)
return {1}
