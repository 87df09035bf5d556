-- ARGV: P, conversation, then entries of its queue. Removes these, but for those that a worker has in hand; how many that
-- were. A batch that was begun and loses one of its messages is begun anew, without what was prepared for it.
local P, conv, now = ARGV[1], ARGV[2], now_ms()
local c, q = hash(conv), queue(conv)
local h, n = unpack(redis.call('HMGET', c, 'h', 'n'))
local frozen = tonumber(n) or 0
local gone, kept, removed, begun = {}, {}, 0, false
for i = 3, #ARGV do gone[ARGV[i]] = true end
for i, entry in ipairs(redis.call('LRANGE', q, 0, -1)) do
  if gone[entry] and not (h and i <= frozen) then
    removed = removed + 1
    begun = begun or i <= frozen
  else
    kept[#kept + 1] = entry
  end
end
if removed == 0 then return 0 end
redis.call('DEL', q)
for _, entry in ipairs(kept) do redis.call('RPUSH', q, entry) end
if h then return removed end
if begun then redis.call('HDEL', c, 'n', 'a', 'o', 'p', 'r', 'w', 'k') end
if #kept == 0 or begun then
  redis.call('ZREM', P .. ':due', conv)
  unready(P, conv)
end
if #kept == 0 then redis.call('DEL', c) elseif begun then mark(P, conv, now, now) end
return removed
