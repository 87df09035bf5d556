-- Shared by every script of the inbox. Time is the server's, in milliseconds: workers' clocks don't matter.
--
-- A conversation has a queue, a small hash and, in the index P, exactly one of these marks while anything is pending:
--   due    when it may be looked at (debounce and pauses between tries)
--   ready  waiting for a worker, oldest first within its tenant; `tenants` lists the tenants that have any, in turn
--   lease  held by a worker until then
-- `looked` says when a worker was last here.
-- Hash: h holder's token, n messages in the frozen batch, a tries, o outbox, f first arrival of what is pending,
--   l last arrival, d debounce (none: 0), m longest debounce (on a cluster), x tries allowed, p pause after a failed try until then,
--   r why it failed, w it waits for the customer: what arrives ends the pause, k what an earlier batch left to deliver.
--   What is ready from its arrival on has none before it is claimed, unless it may be tried more or less often than TRIES.

local TRIES = 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function queue(conv) return 'cc:q:{' .. conv .. '}' end
local function hash(conv) return 'cc:c:{' .. conv .. '}' end
local function alias(conv) return 'cc:alias:{' .. conv .. '}' end
local function tenant_of(conv) return string.match(conv, '^sm:([^:]+):') end

-- One worker is to look. Where nobody listens just now, one word is left for the next who does: who takes all that it may
-- and leaves some passes it on (`claim`).
local function wake(P)
  if redis.call('EXISTS', P .. ':wake') == 0 then redis.call('LPUSH', P .. ':wake', 1) end
end

-- Whether it was not ready yet.
local function make_ready(P, conv, since)
  local tenant = tenant_of(conv)
  local key = P .. ':ready:' .. tenant
  if redis.call('ZADD', key, 'NX', since, conv) == 0 then return false end
  if redis.call('ZCARD', key) == 1 then redis.call('RPUSH', P .. ':tenants', tenant) end
  return true
end

local function unready(P, conv)
  local tenant = tenant_of(conv)
  local key = P .. ':ready:' .. tenant
  if redis.call('ZREM', key, conv) == 1 and redis.call('ZCARD', key) == 0 then
    redis.call('LREM', P .. ':tenants', 0, tenant)
  end
end

-- Marks a conversation that nobody holds. `fresh`: nothing waited in it, so it has no mark yet.
local function place(P, conv, at, now, fresh)
  if at <= now then
    if make_ready(P, conv, now) then
      if not fresh then redis.call('ZREM', P .. ':due', conv) end
      wake(P)
    end
  elseif fresh or not redis.call('ZSCORE', P .. ':ready:' .. tenant_of(conv), conv) then
    -- Sooner than who sleeps knows of: they look again.
    if redis.call('ZADD', P .. ':due', 'LT', 'CH', at, conv) == 1 then wake(P)
    elseif not fresh then redis.call('ZADD', P .. ':due', at, conv) end
  end
end

-- As `place`, unless somebody holds it after all. Marking again is harmless: a duplicate delivery may do it.
local function mark(P, conv, at, now)
  if not redis.call('ZSCORE', P .. ':lease', conv) then place(P, conv, at, now) end
end

-- Workers are here more often than this. Where none was for longer, this server was away (stopped, or starting again), no
-- heartbeat could come, and what ended meanwhile may be in good hands: there is time for one. Once, which half a millisecond
-- tells: a shard that all are too busy to look at must not keep what a dead worker held.
local AWAY, SPARED = 5000, 5000 -- ms
local NOTED = 500 -- ms in which it is not written down again that somebody was here

local function looked(P, now)
  local last = tonumber(redis.call('GET', P .. ':looked') or '')
  if last and now >= last and now - last < NOTED then return end
  redis.call('SET', P .. ':looked', now, 'PX', 86400000)
  if not last or now - last <= AWAY then return end
  local ending = redis.call('ZRANGEBYSCORE', P .. ':lease', '-inf', now + SPARED, 'WITHSCORES')
  for i = 1, #ending, 2 do
    if tonumber(ending[i + 1]) % 1 == 0 then redis.call('ZADD', P .. ':lease', now + SPARED + 0.5, ending[i]) end
  end
end

-- Something has come into a conversation's queue. A try that failed waits out its pause, unless it waits for just this; a
-- holder looks again when it is done. `fresh` as for `place`; `p`, `h` and `w` as its hash has them.
local function come(P, conv, at, now, fresh, p, h, w)
  if not h and not (p and tonumber(p) > now and not w) then place(P, conv, at, now, fresh) end
end

-- Where what is put under this name belongs: people's ids may have been merged, also more than once.
local function home(conv, kept)
  for _ = 1, 10 do
    local to = redis.call('GET', alias(conv))
    if not to then break end
    redis.call('EXPIRE', alias(conv), kept)
    conv = to
  end
  return conv
end

-- A batch of n is done and goes: what is left is nothing, or a new wait. `length`: of the queue with it.
local function settle(P, conv, n, length, now)
  local c, q = hash(conv), queue(conv)
  redis.call('ZREM', P .. ':lease', conv)
  if length <= n then
    redis.call('DEL', c, q)
    return
  end
  redis.call('LTRIM', q, n, -1)
  local l, d = unpack(redis.call('HMGET', c, 'l', 'd'))
  redis.call('HDEL', c, 'h', 'n', 'a', 'o', 'p', 'r', 'w')
  redis.call('HSET', c, 'f', now)
  place(P, conv, (tonumber(l) or 0) + (tonumber(d) or 0), now)
end

-- `owed` is what an earlier batch left to deliver, '' when it has been or the next batch will; the first letter keeps it.
local function entomb(P, conv, count, reason, tries, now, owed)
  redis.call('SADD', P .. ':graves', tenant_of(conv))
  local letters = redis.call('LRANGE', queue(conv), 0, count - 1)
  for i, letter in ipairs(letters) do
    local row = {'conversation', conv, 'reason', reason, 'tries', tries, 'at', now, 'message', string.match(letter, '\n(.*)$')}
    if i == 1 and owed ~= '' then
      row[#row + 1] = 'carried'
      row[#row + 1] = owed
    end
    redis.call('XADD', 'cc:dead:' .. tenant_of(conv), '*', unpack(row))
  end
end

-- Limits stand in ARGV from there on: key, interval ms, burst of each. Milliseconds until all of them let one more pass;
-- 0: it has passed, and is counted. A limit's key holds the time at which its bucket is empty again.
local function pace(from, now)
  local wait, empty = 0, {}
  for i = from, #ARGV, 3 do
    local interval, burst = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
    local at = math.max(now, tonumber(redis.call('GET', ARGV[i]) or 0))
    wait = math.max(wait, at - now - interval * (burst - 1))
    empty[#empty + 1] = {ARGV[i], at + interval}
  end
  if wait > 0 then return math.ceil(wait) end
  for _, one in ipairs(empty) do
    redis.call('SET', one[1], one[2], 'PX', math.ceil(one[2] - now) + 1000)
  end
  return 0
end
