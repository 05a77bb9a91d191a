#!lua flags=allow-oom
-- The marker of a namespace, a hash at KEYS[1]: epoch, format and buckets from
-- the first call on, p:<topic> the highest partition count seen,
-- c:<partition>:<topic> the highest offset committed.
--
-- ARGV: the batch's mark, epoch (16 bytes), format, buckets, then pairs of
-- field and decimal number, none negative. Another number of buckets than the
-- marker's writes nothing. The answer is the clock, a 1 and the mark, then the
-- hash's fields and values.
local key = KEYS[1]
local clock = redis.call('TIME')
local answer = { struct.pack('>I8', clock[1] * 1000000 + clock[2]) .. struct.pack('>I2', #KEYS) .. ARGV[1] }

-- above compares decimal numbers of any length without leading zeros.
local function above(a, b)
  if #a ~= #b then return #a > #b end
  for i = 1, #a do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return false
end

local buckets = redis.call('HGET', key, 'buckets')
if not buckets and ARGV[2] ~= string.rep('\0', 16) then
  redis.call('HSET', key, 'epoch', ARGV[2], 'format', ARGV[3], 'buckets', ARGV[4])
  buckets = ARGV[4]
end
if not buckets or buckets == ARGV[4] then
  for i = 5, #ARGV, 2 do
    local held = redis.call('HGET', key, ARGV[i])
    if not held or above(ARGV[i + 1], held) then
      redis.call('HSET', key, ARGV[i], ARGV[i + 1])
    end
  end
end
for _, part in ipairs(redis.call('HGETALL', key)) do
  answer[#answer + 1] = part
end
return answer
