-- Added to the inbox's lib.lua where the marks lie in other slots than the conversations (gateway/inbox/spread.py). A step
-- of a conversation touches its own slot alone and says in how many ms it is to be looked at; a shard's step marks that.
-- More in a conversation's hash: s the shard of its mark, u when the claim of its holder was made.
-- A shard has besides: `held`, the token of each lease, and `again`, leased conversations that must be looked at once more.
local TRUSTED = 60000 -- ms after a claim in which its holder is sure to look at the queue again, or its lease to end

-- Ms until somebody has to look at it; -1: nothing waits.
local function look_in(conv, now)
  local c, length = hash(conv), redis.call('LLEN', queue(conv))
  if length == 0 then return -1 end
  local n, f, l, d, m, p, w = unpack(redis.call('HMGET', c, 'n', 'f', 'l', 'd', 'm', 'p', 'w'))
  if p and tonumber(p) > now and not (w and length > (tonumber(n) or 0)) then return math.ceil(tonumber(p) - now) end
  l, d = tonumber(l) or 0, tonumber(d) or 0
  if d == 0 then return 0 end
  return math.max(0, math.ceil(math.min(l + d, (tonumber(f) or now) + (tonumber(m) or 0)) - now))
end

-- The batch is done. As `settle`, of the conversation alone.
local function go_on(conv, now)
  local c = hash(conv)
  if redis.call('LLEN', queue(conv)) == 0 then
    redis.call('DEL', c)
    return -1
  end
  redis.call('HDEL', c, 'h', 'u', 'n', 'a', 'o', 'p', 'r', 'w')
  redis.call('HSET', c, 'f', now)
  local l, d = unpack(redis.call('HMGET', c, 'l', 'd'))
  return math.max(0, math.ceil((tonumber(l) or 0) + (tonumber(d) or 0) - now))
end

local function held_since(c, now)
  local h, u = unpack(redis.call('HMGET', c, 'h', 'u'))
  return h and (tonumber(u) or 0) + TRUSTED > now
end

-- A mark that comes while somebody holds the conversation waits for the end of that.
local function mark_in(P, conv, wait, now)
  if redis.call('ZSCORE', P .. ':lease', conv) then
    redis.call('ZADD', P .. ':again', now + wait, conv)
  else
    mark(P, conv, now + wait, now)
  end
end
