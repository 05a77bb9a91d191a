-- What the claim and apply scripts know about packed records. The layout is
-- written down in fence/driver/codec.go; offset k of that text is the Lua index
-- r.z + 1 + k here, r.z being the index of the zero byte.
--
-- Both scripts take ARGV[1], a mark that is echoed in the answer; ARGV[2], what
-- all items of the batch have in common, or '' when they differ; ARGV[2 + i],
-- the body of the item on KEYS[i]; and when they differ, ARGV[2 + n + i], the
-- common part of item i. The answer is the clock, the number of items and the
-- mark, then a note for each item that did not go the common way: its number, a
-- code letter, and bytes that go with the code.
--
-- Numbers are doubles: exact below 2^53, which holds for microseconds until
-- the year 2255. Tokens are compared as bytes.
local KEYS, ARGV = KEYS, ARGV
local rcall, rpcall = redis.call, redis.pcall
local unpack, pack = struct.unpack, struct.pack
local sub, byte, char, find, rep = string.sub, string.byte, string.char, string.find, string.rep
local floor, ceil, max = math.floor, math.ceil, math.max
local n, shared = #KEYS, ARGV[2]

-- TIME moves within a script: read once.
local clock = rcall('TIME')
local now = clock[1] * 1000000 + clock[2]
local nowBytes = pack('>I8', now)
local EXACT = 9007199254740992

local answer = { nowBytes .. pack('>I2', n) .. ARGV[1] }

local function note(i, code, extra)
  answer[#answer + 1] = pack('>I2', i) .. code .. extra
end

-- uvarint reads at i and returns the value (exact below 2^53) and the index
-- after it, nothing when it is cut short or too long.
local function uvarint(s, i, last)
  local v, m = 0, 1
  for k = 1, 10 do
    if i > last then return end
    local b = byte(s, i)
    i = i + 1
    if b < 128 then
      if k == 10 and b > 1 then return end
      return v + b * m, i
    end
    v = v + (b - 128) * m
    m = m * 128
  end
end

-- skip returns the index after the length-prefixed bytes at i.
local function skip(s, i, last)
  local v
  v, i = uvarint(s, i, last)
  if v and i + v - 1 <= last then return i + v end
end

-- tail walks the tail between i and last and sets where the reason and the
-- number of steps begin. It answers false when the tail is not whole.
local function tail(s, i, last, r)
  local v
  i = skip(s, i, last)
  i = i and skip(s, i, last)
  if not i then return false end
  v, i = uvarint(s, i, last)
  if not v or v > 4294967295 then return false end
  v, i = uvarint(s, i, last)
  if not v then return false end
  v, i = uvarint(s, i, last)
  if not v then return false end
  r.reason = i
  i = skip(s, i, last)
  if not i then return false end
  r.steps = i
  v, i = uvarint(s, i, last)
  if not v then return false end
  r.stepCount = v
  for _ = 1, v do
    i = skip(s, i, last)
    if not i or i > last then return false end
    i = skip(s, i + 1, last)
    if not i then return false end
  end
  return i == last + 1
end

-- parse reads a packed record. It answers nil when this script cannot read it:
-- nothing is then written over it.
local function parse(s, isPrior)
  local z = find(s, '\0', 1, true)
  if not z or #s - z < 42 or byte(s, z + 1) ~= 1 then return end
  local r = { s = s, z = z, tokenBytes = sub(s, z + 2, z + 9) }
  r.token = unpack('>I8', r.tokenBytes)
  if r.token >= EXACT then return end
  if sub(s, 1, 5) == 'done:' then
    if isPrior or z < 7 then return end
    r.state, r.releasedToken, r.expire = 'done', 0, 0
    r.kind, r.scheme, r.sum = unpack('BBc16', s, z + 10)
    local attempt, i = uvarint(s, z + 28, #s - 8)
    local retention = attempt and uvarint(s, i, #s - 8)
    if not retention then return end
    if retention > 0 then r.expire = unpack('>I8', s, #s - 7) + retention end
    return r
  end
  r.state = sub(s, 1, z - 1)
  if r.state ~= 'pending' and r.state ~= 'requeued' and r.state ~= 'dead' and r.state ~= 'released' then return end
  if #s - z < 133 then return end
  local length
  r.leaseEnd, r.firstSeen, r.flags, r.kind, r.verdict, r.scheme, r.attempt, r.sum, r.expire, r.nonce, r.released, r.releasedToken,
    r.step, r.takeovers, r.nextAttempt, r.nextStep, r.due, r.attemptEnd, length =
    unpack('>i8c8BBBBI4c16i8c16c16I8I4I4I4I4i8i8I4', s, z + 10)
  r.doubt = r.flags % 2 == 1
  r.tail = z + 134
  r.last = r.tail - 1 + length
  if r.flags > 3 or r.verdict > 2 or r.releasedToken >= EXACT or r.last > #s or not tail(s, r.tail, r.last, r) then return end
  if r.last < #s then
    if isPrior or r.state ~= 'pending' then return end
    r.prior = parse(sub(s, r.last + 1), true)
    if not r.prior then return end
  end
  return r
end

-- expired says whether the record's time is over. Redis removes it within a
-- millisecond of that; the record's own number decides.
local function expired(r)
  return r.expire ~= 0 and r.expire <= now and r.state ~= 'pending' and (r.state == 'done' or not r.doubt)
end

local function pxat(expire)
  return string.format('%.0f', ceil(expire / 1000))
end

-- put writes a record with the end that goes with it, 0 for none, and answers
-- nil or the server's error.
local function put(key, value, expire)
  if expire > 0 then
    return rpcall('SET', key, value, 'PXAT', pxat(expire)).err
  end
  return rpcall('SET', key, value).err
end
