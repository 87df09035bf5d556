-- ARGV: conversation, token, shard, longest batch. The step of a conversation after a shard has given it out. Returns
-- {'claim', tries, tries allowed, session, outbox, why the last try failed, what an earlier batch left, message...};
-- {'bury'} for a batch that killed every worker; {'later', ms or -1} when there is nothing to do yet or at all;
-- {'elsewhere', shard} when its mark belongs there. Asking again with the same token gives the same.
local conv, token, shard, longest, now = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), now_ms()
local c, q = hash(conv), queue(conv)
local length = redis.call('LLEN', q)
if length == 0 then
  redis.call('DEL', c)
  return {'later', -1}
end
local s, h, p, w, n, a, x, o, r, k = unpack(redis.call('HMGET', c, 's', 'h', 'p', 'w', 'n', 'a', 'x', 'o', 'r', 'k'))
if s and s ~= shard then return {'elsewhere', tonumber(s)} end
x = tonumber(x) or 5
if h ~= token then
  if p and tonumber(p) > now and not (w and length > (tonumber(n) or 0)) then return {'later', look_in(conv, now)} end
  a = redis.call('HINCRBY', c, 'a', 1)
  if not n then -- the same rule as in claim.lua
    n = 1
    if a == 1 and length > 1 then
      local entries = redis.call('LRANGE', q, 0, longest - 1)
      local lane = string.match(entries[1], '^[^\n]*')
      while n < #entries and string.match(entries[n + 1], '^[^\n]*') == lane do n = n + 1 end
    end
  end
  redis.call('HSET', c, 'n', n, 'h', token, 'u', now, 's', shard)
end
if tonumber(a) > x + 3 then return {'bury'} end
local claim = {'claim', tonumber(a), x, redis.call('GET', conv) or '', o or '', r or '', k or ''}
for _, entry in ipairs(redis.call('LRANGE', q, 0, tonumber(n) - 1)) do
  claim[#claim + 1] = string.match(entry, '\n(.*)$')
end
return claim
