-- Claims. ARGV[1] is the batch's mark, echoed in the answer; ARGV[i + 1] is
-- the claim on KEYS[i]:
--
--   not after 8, takeover until 8, lease in µs 8, in place 1, then the packed
--   pending record with token, lease end and first seen left zero.
--
-- Answer codes: w wrote on no record, the token is the clock; g granted over
-- the record that follows, after 8 bytes of token; n nothing written, the
-- record that was found follows; u it cannot be read; e the server's error.
local ZERO24 = rep('\0', 24)
local ZERO16 = rep('\0', 16)

-- grant writes the pending record of a claim c over the record r.
local function grant(i, c, r, attempt, step)
  local token = max(r.token, r.releasedToken) + 1
  if token < now then token = now end
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
  local z = r.z
  local own = sub(s, r.tail, r.reason - 1) .. reason .. sub(s, r.steps, r.last)
  local prior = s
  if r.prior then -- its own prior is lost: 2 is the flag that says so
    prior = sub(s, 1, z + 1) .. char(r.flags % 2 + 2) .. sub(s, z + 3, r.last)
  end
  local value = 'pending\0'
    .. char(1, doubt and 1 or 0, doubt and r.kind or c.kind, verdict, scheme)
    .. pack('>I8I4c16I8I8c16', token, attempt, sum, 0, now + c.lease, c.nonce) .. ZERO24
    .. pack('>I4I4I4I4i8i8', step, takeovers, nextAttempt, nextStep, due, attemptEnd)
    .. sub(s, z + 122, z + 129) .. pack('>I4', #own) .. own .. prior
  local err = put(KEYS[i], value, 0)
  if err then return note(i, 'e', err) end
  note(i, 'g', pack('>I8', token) .. s)
end

-- decide handles a claim that did not find an empty place.
local function decide(i, item, found)
  local r
  if found then
    r = parse(found)
    if not r then return note(i, 'u', found) end
  end
  local c = {}
  c.notAfter, c.takeoverUntil, c.lease, c.inPlace = unpack('>i8i8i8B', item)
  c.kind, c.verdict, c.scheme, c.token, c.attempt, c.sum, c.expire, c.leaseEnd, c.nonce, c.rest, c.step =
    unpack('>BBBI8I4c16I8I8c16c24I4', item, 36)
  local prevToken = 0
  if r and expired(r) then
    prevToken = max(r.token, r.releasedToken)
    r = nil
  end
  if r then
    if r.state == 'pending' and r.nonce == c.nonce then return note(i, 'n', found) end
    if r.released == c.nonce and c.nonce ~= ZERO16 then return note(i, 'n', found) end
  end
  if c.notAfter ~= 0 and now > c.notAfter then return note(i, 'n', found or '') end
  if not r or r.state == 'released' then
    if r then prevToken = max(r.token, r.releasedToken) end
    local token = pack('>I8', max(prevToken + 1, now))
    local value = sub(item, 26, 38) .. token .. sub(item, 47, 74)
      .. pack('>I8', now + c.lease) .. sub(item, 83, 154) .. nowBytes .. sub(item, 163)
    local err = put(KEYS[i], value, 0)
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

local timesOf, notAfter, leaseEnd = '', 0, ''
for i = 1, #KEYS do
  local item = ARGV[i + 1]
  local times, head, middle, rest, at = unpack('c25c13xxxxxxxxc28xxxxxxxxc72xxxxxxxx', item)
  -- The claims of a batch mostly name the same times.
  if times ~= timesOf then
    local _, lease
    notAfter, _, lease = unpack('>i8i8i8', times)
    timesOf, leaseEnd = times, pack('>I8', now + lease)
  end
  local found = false
  if notAfter == 0 or now <= notAfter then
    found = rpcall('SET', KEYS[i], head .. nowBytes .. middle .. leaseEnd .. rest .. nowBytes .. sub(item, at), 'NX', 'GET')
    if not found then codes[i] = 'w' end
  else
    found = rpcall('GET', KEYS[i]) or ''
  end
  if found then
    if found.err then
      note(i, 'e', found.err)
    else
      decide(i, item, found ~= '' and found)
    end
  end
end
answer[2] = table.concat(codes)
return answer
