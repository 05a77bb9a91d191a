-- Transitions. In common: op 1, token 8, lease or retention in µs 8. The body,
-- by op:
--
--   R renew    nothing
--   B release  nonce 16
--   T retry    attempt 4, in doubt 1, next attempt 4, next step 4, due in µs 8, reason
--   G give up  the same, the numbers unused
--   N begin    attempt 4, next attempt 4, next step 4
--   K keep     number of steps 4, the steps as they stand in a tail
--   H hand over, D bury   attempt 4, the packed record, its end left zero
--   S seal     the packed record up to the seal time
--   V resolve  applied 1, length of the front 2, front (the prefix with its zero byte), receipt or reason
--
-- An item without a note was done on the holder's own pending record. Codes: w
-- written over the record that follows (nothing: there was none); n nothing
-- written, the record that was found follows; u it cannot be read; e the server's
-- error.
local HEAD = 'pending\0\1'
local ZERO8 = rep('\0', 8)
local TOMBSTONE = 'released\0\1' .. rep('\0', 48)
local TOMBSTONE_END = rep('\0', 32) .. pack('>I4', 7) .. rep('\0', 7)
local TOMBSTONE_LIFE = 3600000000

-- What the common part says. A seal that ends and a renewal have a short way.
local known, knownSpan, op, token, span, ends, endsAt, mineHead, leaseEnd, sealing, renewing

local function learn(common)
  known = common
  local spanBytes
  op, token, spanBytes = unpack('c1c8c8', common)
  mineHead = HEAD .. token
  if spanBytes ~= knownSpan then
    knownSpan, span = spanBytes, unpack('>i8', spanBytes)
    leaseEnd = pack('>I8', now + span)
    ends = span > 0 and now + span or 0
    endsAt = pxat(ends)
  end
  sealing, renewing = op == 'S' and ends > 0, op == 'R'
end

-- finish writes a record that ends with the retention.
local function finish(key, value)
  if ends > 0 then
    return rpcall('SET', key, value, 'PXAT', endsAt).err
  end
  return rpcall('SET', key, value).err
end

-- wrote notes the answer after a write: extra is nil on the holder's own record.
local function wrote(i, err, extra)
  if err then
    note(i, 'e', err)
  elseif extra then
    note(i, 'w', extra)
  end
end

-- splice replaces the bytes of s from index at by part.
local function splice(s, at, part)
  return sub(s, 1, at - 1) .. part .. sub(s, at + #part)
end

-- withTail is r with another tail: bytes up to it, the tail, the prior record.
local function withTail(r, upTo, own)
  return upTo .. pack('>I4', #own) .. own .. sub(r.s, r.last + 1)
end

-- withReason is the tail of r with another reason.
local function withReason(r, reason)
  return sub(r.s, r.tail, r.reason - 1) .. reason .. sub(r.s, r.steps, r.last)
end

-- release puts back what the claim found, or leaves a tombstone.
local function release(i, r)
  local above = pack('>I8', max(r.token, r.releasedToken))
  local life = now + TOMBSTONE_LIFE
  local p = r.prior
  if not p then
    return put(KEYS[i], TOMBSTONE .. pack('>I8', life) .. rep('\0', 16) .. r.nonce .. above .. TOMBSTONE_END, life)
  end
  local last = 0
  if p.state ~= 'pending' and not p.doubt and p.expire > 0 then
    last = max(p.expire, life) -- an expired record stays for the token's sake
  end
  return put(KEYS[i], splice(p.s, p.z + 74, r.nonce .. above), last)
end

-- say writes a verdict.
local function say(i, r, doubt, verdict, nextAttempt, nextStep, due, reason)
  local s, z = r.s, r.z
  local upTo = sub(s, 1, z + 9) .. (span > 0 and leaseEnd or sub(s, z + 10, z + 17)) .. sub(s, z + 18, z + 25)
    .. char(r.flags - r.flags % 2 + doubt, r.kind, verdict) .. sub(s, z + 29, z + 105)
    .. pack('>I4I4i8', nextAttempt, nextStep, due) .. nowBytes
  return put(KEYS[i], withTail(r, upTo, withReason(r, reason)), 0)
end

-- begin starts the next attempt under the same claim.
local function begin(i, r, nextAttempt, nextStep)
  local s, z = r.s, r.z
  return put(KEYS[i], sub(s, 1, z + 9) .. leaseEnd .. sub(s, z + 18, z + 27) .. '\0' .. sub(s, z + 29, z + 29) .. pack('>I4', nextAttempt)
    .. sub(s, z + 34, z + 97) .. pack('>I4', nextStep) .. sub(s, z + 102, z + 105) .. rep('\0', 16) .. sub(s, z + 122), 0)
end

-- leave writes requeued or dead over the holder's record. Of that it keeps what
-- the holder cannot know: what an earlier release left, and the later end of
-- the attempt. Doubt has no end.
local function leave(i, r, body)
  local s, z = r.s, r.z
  local b = find(body, '\0', 5, true)
  local attemptEnd = unpack('>i8', body, b + 122)
  local value = sub(body, 5, b + 49) .. pack('>i8', ends) .. sub(body, b + 58, b + 73) .. sub(s, z + 74, z + 97)
    .. sub(body, b + 98, b + 121) .. pack('>i8', max(attemptEnd, r.attemptEnd)) .. sub(body, b + 130)
  if byte(body, b + 26) % 2 == 1 then return put(KEYS[i], value, 0) end
  return finish(KEYS[i], value)
end

local function putUvarint(v)
  local out = ''
  while v >= 128 do
    out = out .. char(v % 128 + 128)
    v = floor(v / 128)
  end
  return out .. char(v)
end

local function putVarint(v)
  return putUvarint(v >= 0 and v * 2 or -v * 2 - 1)
end

-- doneTail turns the tail of a dead record into that of a done one.
local function doneTail(r)
  local s = r.s
  local seen = unpack('>I8', r.firstSeen)
  local i = skip(s, skip(s, r.tail, r.last), r.last) -- after source and topic
  local _, p = uvarint(s, i, r.last)
  _, p = uvarint(s, p, r.last) -- after partition and offset
  local stamp = uvarint(s, p, r.last) -- odd is negative
  stamp = stamp % 2 == 0 and stamp / 2 or -(stamp + 1) / 2
  return putUvarint(r.attempt) .. putUvarint(max(span, 0)) .. putVarint(seen - r.token) .. putVarint(stamp - floor(seen / 1000))
    .. sub(s, r.tail, p - 1)
end

-- resolve ends the doubt of a dead record.
local function resolve(i, r, body)
  if r.state ~= 'dead' or not r.doubt then return note(i, 'n', r.s) end
  local s, z = r.s, r.z
  local applied, length, at = unpack('>BI2', body)
  if applied == 1 then
    return wrote(i, finish(KEYS[i], sub(body, at, at + length - 1) .. '\1' .. token .. char(r.kind, r.scheme) .. r.sum
      .. doneTail(r) .. sub(body, at + length) .. nowBytes), s)
  end
  local upTo = sub(s, 1, z + 25) .. char(r.flags - 1) .. sub(s, z + 27, z + 49) .. pack('>i8', ends) .. sub(s, z + 58, z + 129)
  return wrote(i, finish(KEYS[i], withTail(r, upTo, withReason(r, sub(body, at)))), s)
end

-- move decides a transition on the whole record.
local function move(i, body)
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
    if mine then return wrote(i, finish(KEYS[i], body .. nowBytes)) end
    if not r or r.state == 'released' or r.state == 'requeued' or r.state == 'dead' then
      return wrote(i, finish(KEYS[i], body .. nowBytes), found)
    end
  elseif not r then
    return note(i, 'n', found)
  elseif op == 'B' then
    if r.state == 'pending' and r.nonce == body and (same or token == ZERO8) and r.flags < 2 then
      return wrote(i, release(i, r), found)
    end
  elseif op == 'V' and same then
    return resolve(i, r, body)
  elseif op == 'D' and same and r.state == 'dead' then
    local attempt = sub(body, 1, 4)
    if unpack('>I4', attempt) > r.attempt and r.doubt then -- doubt has no end
      return wrote(i, put(KEYS[i], splice(found, r.z + 30, attempt), 0), found)
    end
  elseif not mine then
    return note(i, 'n', found)
  elseif op == 'R' then
    return wrote(i, put(KEYS[i], splice(found, r.z + 10, leaseEnd), 0))
  elseif op == 'T' or op == 'G' then
    local attempt, doubt, nextAttempt, nextStep, due, at = unpack('>I4BI4I4i8', body)
    local verdict = op == 'T' and 1 or 2
    local said = r.verdict == verdict and r.doubt == (doubt == 1) and (verdict == 2 or r.nextAttempt == nextAttempt)
    if r.attempt == attempt and not said and r.verdict <= verdict then
      if op == 'G' then nextAttempt, nextStep, due = 0, 0, 0 else due = now + due end
      return wrote(i, say(i, r, doubt, verdict, nextAttempt, nextStep, due, sub(body, at)), found)
    end
  elseif op == 'N' then
    local attempt, nextAttempt, nextStep = unpack('>I4I4I4', body)
    if r.attempt == attempt and r.verdict == 1 then return wrote(i, begin(i, r, nextAttempt, nextStep), found) end
  elseif op == 'K' then
    local count, at = unpack('>I4', body)
    if count >= r.stepCount then
      local own = sub(found, r.tail, r.steps - 1) .. sub(body, at)
      return wrote(i, put(KEYS[i], withTail(r, sub(found, 1, r.z + 129), own), 0), found)
    end
  elseif op == 'H' or op == 'D' then
    return wrote(i, leave(i, r, body), found)
  end
  return note(i, 'n', found)
end

local alike = shared ~= ''
if alike then learn(shared) end
for i = 1, n do
  if not alike and ARGV[2 + n + i] ~= known then learn(ARGV[2 + n + i]) end
  -- The first 17 bytes are enough to know the holder's own record.
  if sealing and rpcall('GETRANGE', KEYS[i], '0', '16') == mineHead then
    local res = rpcall('SET', KEYS[i], ARGV[2 + i] .. nowBytes, 'PXAT', endsAt)
    if res.err then note(i, 'e', res.err) end
  elseif renewing and rpcall('GETRANGE', KEYS[i], '0', '16') == mineHead then
    local res = rpcall('SETRANGE', KEYS[i], '17', leaseEnd)
    if type(res) == 'table' then note(i, 'e', res.err) end
  else
    move(i, ARGV[2 + i])
  end
end
return answer
