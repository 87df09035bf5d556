-- KEYS: the tenant's dead letters. ARGV: conversation, reason, tries, what was to be delivered with them or '', message...
-- Burying the same again within an hour changes nothing: the batch leaves its queue in another step.
local dead, now = KEYS[1], now_ms()
for i = 5, #ARGV do
  if redis.call('SET', 'cc:buried:{' .. dead .. '}:' .. redis.sha1hex(ARGV[1] .. ARGV[i]), 1, 'NX', 'EX', 3600) then
    local row = {'conversation', ARGV[1], 'reason', ARGV[2], 'tries', ARGV[3], 'at', now, 'message', ARGV[i]}
    if i == 5 and ARGV[4] ~= '' then
      row[#row + 1] = 'carried'
      row[#row + 1] = ARGV[4]
    end
    redis.call('XADD', dead, '*', unpack(row))
  end
end
return 1
