-- ARGV: conversation, then entries of its queue. As the inbox's forget.lua, of the conversation alone. Returns {how many were
-- removed, its shard or -1, 1 when it has to be marked anew: it is empty, or a batch that was begun is begun anew}.
local conv = ARGV[1]
local c, q = hash(conv), queue(conv)
local h, n, s = unpack(redis.call('HMGET', c, 'h', 'n', 's'))
local frozen = tonumber(n) or 0
local gone, kept, removed, begun = {}, {}, 0, false
for i = 2, #ARGV do gone[ARGV[i]] = true end
for i, entry in ipairs(redis.call('LRANGE', q, 0, -1)) do
  if gone[entry] and not (h and i <= frozen) then
    removed = removed + 1
    begun = begun or i <= frozen
  else
    kept[#kept + 1] = entry
  end
end
if removed == 0 then return {0, -1, 0} end
redis.call('DEL', q)
for _, entry in ipairs(kept) do redis.call('RPUSH', q, entry) end
if h then return {removed, -1, 0} end
if begun then redis.call('HDEL', c, 'n', 'a', 'o', 'p', 'r', 'w', 'k') end
return {removed, tonumber(s) or -1, (#kept == 0 or begun) and 1 or 0}
