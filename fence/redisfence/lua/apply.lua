-- Transitions. ARGV[1] is the batch's mark, echoed in the answer; ARGV[i + 1]
-- is the transition of KEYS[i]:
--
--   op 1, token 8, lease or retention in µs 8, then by op:
--   R renew    nothing
--   B release  nonce 16
--   T retry    attempt 4, in doubt 1, next attempt 4, next step 4, due in µs 8, reason
--   G give up  the same, the numbers unused
--   N begin    attempt 4, next attempt 4, next step 4
--   K keep     number of steps 4, the steps as they stand in a tail
--   H hand over, D bury   attempt 4, the packed record with expiry left zero
--   S seal     length of the front 2, front (up to the seal time), tail
--   V resolve  applied 1, length of the front 2, front (the prefix with its zero byte), receipt or reason
--
-- Answer codes: k done on the holder's own pending record; w written over the
-- record that follows (nothing: there was none); n nothing written, the record
-- that was found follows; u it cannot be read; e the server's error.
local HEAD = 'pending\0\1'
local TOMBSTONE = 'released\0\1' .. rep('\0', 32)
local TOMBSTONE_END = rep('\0', 40) .. pack('>I4', 7) .. rep('\0', 7)
local TOMBSTONE_LIFE = 3600000000

local paramOf, ending, endingAt = '', 0, ''

-- expiry turns a retention into the record's end and Redis's.
local function expiry(param)
  if param ~= paramOf then
    local retention = unpack('>i8', param)
    paramOf = param
    ending = retention > 0 and now + retention or 0
    endingAt = ending > 0 and pxat(ending) or nil
  end
end

local function write(key, value)
  local res
  if endingAt then
    res = rpcall('SET', key, value, 'PXAT', endingAt)
  else
    res = rpcall('SET', key, value)
  end
  return res.err
end

-- wrote notes the answer after a write: extra is nil on the holder's own record.
local function wrote(i, err, extra)
  if err then
    note(i, 'e', err)
  elseif extra then
    note(i, 'w', extra)
  else
    codes[i] = 'k'
  end
end

-- splice replaces the bytes of s from index at by part.
local function splice(s, at, part)
  return sub(s, 1, at - 1) .. part .. sub(s, at + #part)
end

-- The bytes after the last one of the tail: the prior record.
local function rest(r)
  return sub(r.s, r.last + 1)
end

-- release puts back what the claim found, or leaves a tombstone.
local function release(i, r)
  local above = pack('>I8', max(r.token, r.releasedToken))
  local life = now + TOMBSTONE_LIFE
  if not r.prior then
    return put(KEYS[i], TOMBSTONE .. pack('>I8', life) .. rep('\0', 24) .. r.nonce .. above .. TOMBSTONE_END, life)
  end
  local p = r.prior
  local ends = 0
  if p.state ~= 'pending' and not p.doubt and p.expire > 0 then
    -- An expired record stays for the token's sake.
    ends = max(p.expire, life)
  end
  return put(KEYS[i], splice(p.s, p.z + 66, r.nonce .. above), ends)
end

-- say writes a verdict.
local function say(i, r, doubt, verdict, nextAttempt, nextStep, due, lease, reason)
  local s, z = r.s, r.z
  local own = sub(s, r.tail, r.reason - 1) .. reason .. sub(s, r.steps, r.last)
  local value = sub(s, 1, z + 1) .. char(r.flags - r.flags % 2 + doubt) .. sub(s, z + 3, z + 3) .. char(verdict) .. sub(s, z + 5, z + 41)
    .. pack('>i8', lease > 0 and now + lease or r.leaseEnd) .. sub(s, z + 50, z + 97)
    .. pack('>I4I4i8', nextAttempt, nextStep, due) .. nowBytes .. sub(s, z + 122, z + 129)
    .. pack('>I4', #own) .. own .. rest(r)
  return put(KEYS[i], value, 0)
end

-- putUvarint is the inverse of uvarint.
local function putUvarint(n)
  local out = ''
  while n >= 128 do
    out = out .. char(n % 128 + 128)
    n = floor(n / 128)
  end
  return out .. char(n)
end

-- doneTail turns the tail of a dead record into that of a done one.
local function doneTail(r, retention)
  local s = r.s
  local seen = unpack('>I8', s, r.z + 122)
  local i = skip(s, skip(s, r.tail, r.last), r.last) -- after source and topic
  local names = sub(s, r.tail, i - 1)
  local _, p = uvarint(s, i, r.last)
  _, p = uvarint(s, p, r.last)
  local place = sub(s, i, p - 1)
  local stamp = uvarint(s, p, r.last) -- zigzag: odd is negative
  stamp = stamp % 2 == 0 and stamp / 2 or -(stamp + 1) / 2
  local age = stamp - floor(seen / 1000)
  return putUvarint(max(retention, 0)) .. putUvarint(seen) .. putUvarint(age >= 0 and age * 2 or -age * 2 - 1) .. names .. place
end

local function resolve(i, r, item, param)
  local applied, n, at = unpack('>BI2', item, 18)
  if r.state ~= 'dead' or not r.doubt then return note(i, 'n', r.s) end
  local s, z = r.s, r.z
  if applied == 1 then
    local value = sub(item, at, at + n - 1) .. char(1, 0, r.kind, 0, r.scheme) .. sub(s, z + 6, z + 33) .. nowBytes
      .. doneTail(r, unpack('>i8', param)) .. sub(item, at + n)
    return wrote(i, write(KEYS[i], value), s)
  end
  local own = sub(s, r.tail, r.reason - 1) .. sub(item, at + n) .. sub(s, r.steps, r.last)
  local value = sub(s, 1, z + 1) .. char(r.flags - 1) .. sub(s, z + 3, z + 33) .. pack('>i8', ending) .. sub(s, z + 42, z + 129)
    .. pack('>I4', #own) .. own
  return wrote(i, write(KEYS[i], value), s)
end

-- move decides a transition on the whole record.
local function move(i, op, token, param, item)
  local found = rpcall('GET', KEYS[i])
  local r
  if found then
    if found.err then return note(i, 'e', found.err) end
    r = parse(found)
    if not r then return note(i, 'u', found) end
    if expired(r) then r = nil end
  end
  found = found or ''
  local same = r and r.tokenBytes == token
  local mine = same and r.state == 'pending'
  if op == 'S' then
    expiry(param)
    local n = unpack('>I2', item, 18)
    local value = sub(item, 20, 19 + n) .. nowBytes .. sub(item, 20 + n)
    if mine then return wrote(i, write(KEYS[i], value)) end
    if not r or r.state == 'released' or r.state == 'requeued' or r.state == 'dead' then
      return wrote(i, write(KEYS[i], value), found)
    end
  elseif not r then
    return note(i, 'n', found)
  elseif op == 'B' then
    if r.state == 'pending' and r.nonce == sub(item, 18, 33) and (same or token == rep('\0', 8)) and r.flags < 2 then
      return wrote(i, release(i, r), found)
    end
  elseif op == 'V' and same then
    expiry(param)
    return resolve(i, r, item, param)
  elseif op == 'D' and same and r.state == 'dead' then
    local attempt = sub(item, 18, 21)
    if unpack('>I4', attempt) > r.attempt then
      -- SETRANGE keeps the record's end.
      local res = rpcall('SETRANGE', KEYS[i], r.z + 13, attempt)
      return wrote(i, type(res) == 'table' and res.err, found)
    end
  elseif not mine then
    return note(i, 'n', found)
  elseif op == 'R' then
    return wrote(i, put(KEYS[i], splice(found, r.z + 42, pack('>i8', now + unpack('>i8', param))), 0))
  elseif op == 'T' or op == 'G' then
    local attempt, doubt, nextAttempt, nextStep, due, at = unpack('>I4BI4I4i8', item, 18)
    local verdict = op == 'T' and 1 or 2
    local said = r.verdict == verdict and r.doubt == (doubt == 1) and (verdict == 2 or r.nextAttempt == nextAttempt)
    if r.attempt == attempt and not said and r.verdict <= verdict then
      if op == 'G' then nextAttempt, nextStep, due = 0, 0, 0 else due = now + due end
      return wrote(i, say(i, r, doubt, verdict, nextAttempt, nextStep, due, unpack('>i8', param), sub(item, at)), found)
    end
  elseif op == 'N' then
    local attempt, nextAttempt, nextStep = unpack('>I4I4I4', item, 18)
    if r.attempt == attempt and r.verdict == 1 then
      local s, z = found, r.z
      local value = sub(s, 1, z + 3) .. '\0' .. sub(s, z + 5, z + 13) .. pack('>I4', nextAttempt) .. sub(s, z + 18, z + 41)
        .. pack('>i8', now + unpack('>i8', param)) .. sub(s, z + 50, z + 89) .. pack('>I4', nextStep)
        .. sub(s, z + 94, z + 97) .. rep('\0', 16) .. sub(s, z + 114)
      return wrote(i, put(KEYS[i], value, 0), found)
    end
  elseif op == 'K' then
    local count, at = unpack('>I4', item, 18)
    if count >= r.stepCount then
      local own = sub(found, r.tail, r.steps - 1) .. sub(item, at)
      local value = sub(found, 1, r.z + 129) .. pack('>I4', #own) .. own .. rest(r)
      return wrote(i, put(KEYS[i], value, 0), found)
    end
  elseif op == 'H' or op == 'D' then
    expiry(param)
    local z = find(item, '\0', 22, true)
    local value = sub(item, 22, z + 33) .. pack('>i8', ending) .. sub(item, z + 42, z + 65)
      .. sub(found, r.z + 66, r.z + 89) .. sub(item, z + 90)
    if byte(item, z + 2) % 2 == 1 then
      return wrote(i, put(KEYS[i], value, 0), found) -- doubt stays until it is resolved
    end
    return wrote(i, write(KEYS[i], value), found)
  end
  return note(i, 'n', found)
end

for i = 1, #KEYS do
  local item = ARGV[i + 1]
  local op, token, param, at = unpack('c1c8c8', item)
  local head
  if op == 'S' or op == 'R' then
    head = rpcall('GETRANGE', KEYS[i], '0', '20')
    if head.err then head = '' end
  end
  if head and sub(head, 1, 9) == HEAD and sub(head, 14) == token then
    if op == 'S' then
      if param ~= paramOf then expiry(param) end
      local n = unpack('>I2', item, at)
      wrote(i, write(KEYS[i], sub(item, at + 2, at + 1 + n) .. nowBytes .. sub(item, at + 2 + n)))
    else
      local res = rpcall('SETRANGE', KEYS[i], '49', pack('>i8', now + unpack('>i8', param)))
      wrote(i, type(res) == 'table' and res.err)
    end
  else
    move(i, op, token, param, item)
  end
end
answer[2] = table.concat(codes)
return answer
