-- What the claim and apply scripts know about packed records. The layout is
-- written down in fence/driver/codec.go; header offset k of that file is the
-- Lua index r.z + 1 + k here, r.z being the index of the zero byte.
--
-- Numbers are doubles: exact below 2^53, which holds for microseconds until
-- the year 2255. Tokens are compared as bytes.
local rcall, rpcall = redis.call, redis.pcall
local unpack, pack = struct.unpack, struct.pack
local sub, byte, char, find, rep = string.sub, string.byte, string.char, string.find, string.rep
local floor, max = math.floor, math.max

-- TIME moves within a script: read once.
local clock = rcall('TIME')
local now = clock[1] * 1000000 + clock[2]
local nowBytes = pack('>I8', now)
local EXACT = 9007199254740992

local codes, answer = {}, { nowBytes .. ARGV[1], '' }

-- note records the answer to item i: a code, and bytes that go with it.
local function note(i, code, extra)
  codes[i] = code
  answer[#answer + 1] = extra
end

-- uvarint reads at i and returns the value (exact below 2^53) and the index
-- after it, nothing when it is cut short or too long.
local function uvarint(s, i, last)
  local n, m = 0, 1
  for k = 1, 10 do
    if i > last then return end
    local b = byte(s, i)
    i = i + 1
    if b < 128 then
      if k == 10 and b > 1 then return end
      return n + b * m, i
    end
    n = n + (b - 128) * m
    m = m * 128
  end
end

-- skip returns the index after the length-prefixed bytes at i.
local function skip(s, i, last)
  local n
  n, i = uvarint(s, i, last)
  if n and i + n - 1 <= last then return i + n end
end

-- tail walks the tail between i and last and sets where the reason and the
-- number of steps begin. It answers false when the tail is not whole.
local function tail(s, i, last, r)
  local n
  i = skip(s, i, last)
  i = i and skip(s, i, last)
  if not i then return false end
  n, i = uvarint(s, i, last)
  if not n or n > 4294967295 then return false end
  n, i = uvarint(s, i, last)
  if not n then return false end
  n, i = uvarint(s, i, last)
  if not n then return false end
  r.reason = i
  i = skip(s, i, last)
  if not i then return false end
  r.steps = i
  n, i = uvarint(s, i, last)
  if not n then return false end
  r.stepCount = n
  for _ = 1, n do
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
  if not z or #s - z < 33 then return end
  local r = { s = s, z = z }
  r.version, r.flags, r.kind, r.verdict, r.scheme, r.tokenBytes, r.attempt, r.sum =
    unpack('>BBBBBc8I4c16', s, z + 1)
  r.token = unpack('>I8', r.tokenBytes)
  if r.version ~= 1 or r.flags > 3 or r.verdict > 2 or r.token >= EXACT then return end
  r.doubt = r.flags % 2 == 1
  if sub(s, 1, 5) == 'done:' then
    if isPrior or z < 7 or #s - z < 42 then return end
    r.state = 'done'
    local retention = uvarint(s, z + 42, #s)
    if not retention then return end
    r.expire = retention > 0 and unpack('>I8', s, z + 34) + retention or 0
    r.releasedToken = 0
    return r
  end
  r.state = sub(s, 1, z - 1)
  if r.state ~= 'pending' and r.state ~= 'requeued' and r.state ~= 'dead' and r.state ~= 'released' then return end
  if #s - z < 133 then return end
  r.expire, r.leaseEnd, r.nonce, r.released, r.releasedToken, r.step, r.takeovers, r.nextAttempt, r.nextStep, r.due, r.attemptEnd =
    unpack('>i8i8c16c16I8I4I4I4I4i8i8', s, z + 34)
  r.tail = z + 134
  r.last = r.tail - 1 + unpack('>I4', s, z + 130)
  if r.releasedToken >= EXACT or r.last > #s or not tail(s, r.tail, r.last, r) then return end
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
  return string.format('%.0f', math.ceil(expire / 1000))
end

-- put writes a record with the expiry that goes with it and answers nil, or
-- the server's error.
local function put(key, value, expire)
  local res
  if expire > 0 then
    res = rpcall('SET', key, value, 'PXAT', pxat(expire))
  else
    res = rpcall('SET', key, value)
  end
  return res.err
end
