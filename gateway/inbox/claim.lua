-- ARGV: P, worker, request id, how many, lease ms, longest batch. Returns {ms until something is due or -1, claims}, a
-- claim being {conversation, token, tries, tries allowed, session, outbox, why the last try failed, what an earlier batch
-- left to deliver, ms it was ready, entry of the queue...}. The request id makes a repeat after a lost answer return the
-- same claims. Fewer than asked for: no more was ready.
local P, worker, request, want, lease, longest = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local now, claims = now_ms(), {}
looked(P, now)

local function give(conv, token, a, x, o, r, k, waited, entries, n)
  local session = redis.call('GET', conv)
  claims[#claims + 1] = {conv, token, a, x, session or '', o or '', r or '', k or '', waited, unpack(entries, 1, n)}
end

if ARGV[7] == '1' then -- a repeat: what the lost answer held
  for _, conv in ipairs(redis.call('ZRANGE', P .. ':lease', 0, -1)) do
    local h, n, a, x, o, r, k = unpack(redis.call('HMGET', hash(conv), 'h', 'n', 'a', 'x', 'o', 'r', 'k'))
    if h and string.sub(h, -#request) == request then
      give(conv, h, tonumber(a), tonumber(x) or TRIES, o, r, k, 0, redis.call('LRANGE', queue(conv), 0, n - 1), tonumber(n))
    end
  end
end

-- What of a sorted set is over by now; ms until the first of the rest is, if there is any.
local function over(key, each)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
  if first and tonumber(first) <= now then
    local some = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 200)
    for i = 1, #some, 2 do
      redis.call('ZREM', key, some[i])
      each(some[i])
      make_ready(P, some[i], some[i + 1])
    end
    first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
  end
  return first and math.max(0, math.ceil(tonumber(first) - now))
end

local next_due = over(P .. ':due', function() end)
over(P .. ':lease', function(conv) redis.call('HDEL', hash(conv), 'h') end)

local more = true
while more and #claims < want do
  local room = want - #claims
  local tenants = redis.call('LPOP', P .. ':tenants', room) or {}
  more = #tenants == room
  for _, tenant in ipairs(tenants) do
    local key = P .. ':ready:' .. tenant
    local conv, since = unpack(redis.call('ZPOPMIN', key))
    if redis.call('ZCARD', key) > 0 then
      redis.call('RPUSH', P .. ':tenants', tenant)
      more = true
    end
    if conv then
      local c, q = hash(conv), queue(conv)
      local n, a, x, o, r, k, f = unpack(redis.call('HMGET', c, 'n', 'a', 'x', 'o', 'r', 'k', 'f'))
      local entries = redis.call('LRANGE', q, 0, (n or longest) - 1)
      if #entries == 0 then
        redis.call('DEL', c)
      else
        a, x = (tonumber(a) or 0) + 1, tonumber(x) or TRIES
        if n then
          n = tonumber(n)
        else
          -- The batch is frozen here: a retry must send the same body. After a failure its messages are tried singly, so
          -- that a poisonous one does not take its companions along.
          n = 1
          if a == 1 and #entries > 1 then
            local lane = string.match(entries[1], '^[^\n]*')
            while n < #entries and string.match(entries[n + 1], '^[^\n]*') == lane do n = n + 1 end
          end
        end
        if a > x + 3 then -- it kills even the worker that would bury it
          local length = redis.call('LLEN', q)
          entomb(P, conv, n, 'every worker that took it died', a - 1, now, length <= n and k or '')
          settle(P, conv, n, length, now)
        else
          local token = now .. ':' .. worker .. ':' .. request
          redis.call('HSET', c, 'a', a, 'n', n, 'h', token, 'f', f or since)
          redis.call('ZADD', P .. ':lease', now + lease, conv)
          give(conv, token, a, x, o, r, k, math.max(0, math.floor(now - tonumber(since))), entries, n)
        end
      end
    end
  end
end
if #claims >= want and redis.call('EXISTS', P .. ':tenants') == 1 then wake(P) end
return {next_due or -1, claims}
