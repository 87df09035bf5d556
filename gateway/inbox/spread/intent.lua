-- ARGV: conversation, token, outbox. Records what is about to go out; 0: somebody else holds the conversation by now.
if redis.call('HGET', hash(ARGV[1]), 'h') ~= ARGV[2] then return 0 end
redis.call('HSET', hash(ARGV[1]), 'o', ARGV[3])
return 1
