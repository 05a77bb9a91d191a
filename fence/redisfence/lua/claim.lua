-- Claims. In common: not after 8, takeover until 8, lease in µs 8, in place 1.
-- The body is the packed pending record behind its token, lease end and first
-- seen, which are made here.
--
-- An item without a note was granted on no record, its token is the clock. Codes:
-- g granted over the record that follows (nothing: there was none) after 8 bytes
-- of token; n nothing written, the record that was found follows; u it cannot be
-- read; e the server's error.
local ZERO16, ZERO24 = rep('\0', 16), rep('\0', 24)
local HEAD = 'pending\0\1'

-- grant writes the pending record of claim c over record r.
local function grant(i, c, r, attempt, step)
  local token = pack('>I8', max(r.token + 1, r.releasedToken + 1, now))
  local s = r.s
  local takeovers, attemptEnd, doubt = r.takeovers, r.attemptEnd, r.doubt
  local verdict, nextAttempt, nextStep, due, reason = 0, 0, 0, 0, '\0'
  if r.state == 'pending' then
    if r.verdict == 2 or (r.verdict == 1 and attempt < r.nextAttempt) then
      verdict, nextAttempt, nextStep, due = r.verdict, r.nextAttempt, r.nextStep, r.due
      reason = sub(s, r.reason, r.steps - 1)
    end
    if r.verdict == 0 and not (r.kind == 1 and c.kind == 1) then
      doubt = true
      takeovers = takeovers + 1
      attemptEnd = max(attemptEnd, r.leaseEnd)
    end
  end
  local scheme, sum = r.scheme, r.sum
  if scheme == 0 then scheme, sum = c.scheme, c.sum end
  local own = sub(s, r.tail, r.reason - 1) .. reason .. sub(s, r.steps, r.last)
  local prior = s
  if r.prior then -- its own prior is lost: flag 2 says so
    prior = sub(s, 1, r.z + 25) .. char(r.flags % 2 + 2) .. sub(s, r.z + 27, r.last)
  end
  local err = put(KEYS[i], HEAD .. token .. pack('>I8', now + c.lease) .. r.firstSeen
    .. char(doubt and 1 or 0, doubt and r.kind or c.kind, verdict, scheme)
    .. pack('>I4c16I8c16', attempt, sum, 0, c.nonce) .. ZERO24
    .. pack('>I4I4I4I4i8i8I4', step, takeovers, nextAttempt, nextStep, due, attemptEnd, #own) .. own .. prior, 0)
  if err then return note(i, 'e', err) end
  note(i, 'g', token .. s)
end

-- decide handles a claim that did not find an empty place.
local function decide(i, common, body, found)
  local r
  local floorToken = 0
  if found then
    r = parse(found)
    if not r then return note(i, 'u', found) end
    if expired(r) then
      floorToken = max(r.token, r.releasedToken)
      r = nil
    end
  end
  local c, _ = {}, nil
  c.notAfter, c.takeoverUntil, c.lease, c.inPlace = unpack('>i8i8i8B', common)
  c.kind, c.scheme, c.attempt, c.sum, _, c.nonce, _, c.step = unpack('>xBxBI4c16I8c16c24I4', body)
  if r then
    if r.state == 'pending' and r.nonce == c.nonce then return note(i, 'n', found) end
    if r.released == c.nonce and c.nonce ~= ZERO16 then return note(i, 'n', found) end
  end
  if c.notAfter ~= 0 and now > c.notAfter then return note(i, 'n', found or '') end
  if not r or r.state == 'released' then
    if r then floorToken = max(r.token, r.releasedToken) end
    local token = pack('>I8', max(floorToken + 1, now))
    local err = put(KEYS[i], HEAD .. token .. pack('>I8', now + c.lease) .. nowBytes .. body, 0)
    if err then return note(i, 'e', err) end
    return note(i, 'g', token .. (found or ''))
  end
  if r.scheme ~= 0 and r.scheme == c.scheme and r.sum ~= c.sum then return note(i, 'n', found) end
  if r.state == 'done' then return note(i, 'n', found) end
  if r.state == 'requeued' then
    if c.attempt < r.attempt then return note(i, 'n', found) end
    return grant(i, c, r, c.attempt, c.step)
  end
  if r.state == 'dead' then
    if c.attempt <= r.attempt or (r.doubt and (r.kind == 4 or r.kind ~= c.kind)) then return note(i, 'n', found) end
    return grant(i, c, r, c.attempt, c.step)
  end
  if r.leaseEnd == 0 or r.leaseEnd > now or now > c.takeoverUntil then return note(i, 'n', found) end
  if r.verdict == 2 then return grant(i, c, r, r.attempt, r.step) end
  if r.verdict == 1 then
    if c.attempt >= r.nextAttempt then return grant(i, c, r, c.attempt, c.step) end
    if now >= r.due then return grant(i, c, r, r.nextAttempt, r.nextStep) end
    if c.inPlace == 1 then return note(i, 'n', found) end
    return grant(i, c, r, r.attempt, r.step)
  end
  if c.attempt > r.attempt then return grant(i, c, r, max(c.attempt, r.attempt + 1), c.step) end
  return grant(i, c, r, r.attempt + 1, r.step)
end

local known, front, late
local function learn(common)
  local notAfter, _, lease = unpack('>i8i8i8', common)
  known, late = common, notAfter ~= 0 and now > notAfter
  front = HEAD .. nowBytes .. pack('>I8', now + lease) .. nowBytes
end

local alike = shared ~= ''
if alike then learn(shared) end
for i = 1, n do
  if not alike and ARGV[2 + n + i] ~= known then learn(ARGV[2 + n + i]) end
  -- One call is enough for a place that is empty.
  if late or rpcall('SETNX', KEYS[i], front .. ARGV[2 + i]) ~= 1 then
    local found = rpcall('GET', KEYS[i])
    if found and found.err then
      note(i, 'e', found.err)
    else
      decide(i, known, ARGV[2 + i], found)
    end
  end
end
return answer
