-- ARGV: P, worker, request id, how many, lease ms, longest batch. Returns {ms until something is due or -1, claims}, a
-- claim being {conversation, token, tries, tries allowed, session, outbox, why the last try failed, what an earlier batch
-- left to deliver, ms it was ready, message...}. The request id makes a repeat after a lost answer return the same claims.
local P, worker, request, want, lease, longest = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local now, claims = now_ms(), {}
looked(P, now)

local function give(conv, token, waited)
  local c = hash(conv)
  local n, a, x, o, r, k = unpack(redis.call('HMGET', c, 'n', 'a', 'x', 'o', 'r', 'k'))
  local claim = {conv, token, tonumber(a), tonumber(x) or 5, redis.call('GET', conv) or '', o or '', r or '', k or '', waited}
  for _, entry in ipairs(redis.call('LRANGE', queue(conv), 0, tonumber(n) - 1)) do
    claim[#claim + 1] = string.match(entry, '\n(.*)$')
  end
  claims[#claims + 1] = claim
end

if ARGV[7] == '1' then -- a repeat: what the lost answer held
  for _, conv in ipairs(redis.call('ZRANGE', P .. ':lease', 0, -1)) do
    local h = redis.call('HGET', hash(conv), 'h')
    if h and string.sub(h, -#request) == request then give(conv, h, 0) end
  end
end

local due = redis.call('ZRANGEBYSCORE', P .. ':due', '-inf', now, 'WITHSCORES', 'LIMIT', 0, 200)
for i = 1, #due, 2 do
  redis.call('ZREM', P .. ':due', due[i])
  make_ready(P, due[i], due[i + 1])
end
local ended = redis.call('ZRANGEBYSCORE', P .. ':lease', '-inf', now, 'WITHSCORES', 'LIMIT', 0, 200)
for i = 1, #ended, 2 do
  redis.call('ZREM', P .. ':lease', ended[i])
  redis.call('HDEL', hash(ended[i]), 'h')
  make_ready(P, ended[i], ended[i + 1])
end

while #claims < want do
  local tenant = redis.call('LPOP', P .. ':tenants')
  if not tenant then break end
  local key = P .. ':ready:' .. tenant
  local conv, since = unpack(redis.call('ZPOPMIN', key))
  if redis.call('ZCARD', key) > 0 then redis.call('RPUSH', P .. ':tenants', tenant) end
  if conv then
    local c, q = hash(conv), queue(conv)
    local length = redis.call('LLEN', q)
    if length == 0 then
      redis.call('DEL', c)
    else
      local n, o, x = unpack(redis.call('HMGET', c, 'n', 'o', 'x'))
      local a = redis.call('HINCRBY', c, 'a', 1)
      x = tonumber(x) or 5
      if not n then
        -- The batch is frozen here: a retry must send the same body. After a failure its messages are tried singly, so
        -- that a poisonous one does not take its companions along.
        n = 1
        if a == 1 and length > 1 then
          local entries = redis.call('LRANGE', q, 0, longest - 1)
          local lane = string.match(entries[1], '^[^\n]*')
          while n < #entries and string.match(entries[n + 1], '^[^\n]*') == lane do n = n + 1 end
        end
        redis.call('HSET', c, 'n', n)
      end
      if a > x + 3 then -- it kills even the worker that would bury it
        local owed = length <= tonumber(n) and redis.call('HGET', c, 'k') or ''
        entomb(P, conv, tonumber(n), 'every worker that took it died', a - 1, now, owed)
        redis.call('LTRIM', q, tonumber(n), -1)
        settle(P, conv, now)
      else
        local token = now .. ':' .. worker .. ':' .. request
        redis.call('HSET', c, 'h', token)
        redis.call('ZADD', P .. ':lease', now + lease, conv)
        give(conv, token, math.max(0, math.floor(now - tonumber(since))))
      end
    end
  end
end

local next_due = redis.call('ZRANGE', P .. ':due', 0, 0, 'WITHSCORES')[2]
return {next_due and math.max(0, math.ceil(tonumber(next_due) - now)) or -1, claims}
