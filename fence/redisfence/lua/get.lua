#!lua flags=allow-oom
-- Reads records. It is declared as a script that may write, so that a replica
-- refuses it: what it answers is the write side's.
local clock = redis.call('TIME')
local answer = { struct.pack('>I8', clock[1] * 1000000 + clock[2]) .. struct.pack('>I2', #KEYS) .. ARGV[1] }
for i = 1, #KEYS do
  answer[i + 1] = redis.call('GET', KEYS[i])
end
return answer
