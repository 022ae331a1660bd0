#include "services/ratelimit/redis/scripts.h"

namespace tollgate::ratelimit {
namespace {

// Common part of the scripts: the time, whether Redis knows the slots, and the subjects' state.
constexpr char kCommon[] = R"lua(
local server, base, GAP, now = ARGV[1], KEYS[1] .. ':' .. ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ARGV = {unpack(ARGV, 5)}
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local WINDOW, DEBT, FORGET, HOLD = 60000000000, 120000000000, 600000000, 2000000
local fmod, floor, max, min = math.fmod, math.floor, math.max, math.min
-- Microseconds until all running requests have renewed their slots; 0: none may be missing. Slots
-- may be missing if this key was lost, if the server has changed, or if no process came for so long
-- that slots expired because they could not be renewed.
local QUIET, SEEN = 4000000, 500000
local function unsettled()
  if GAP == 0 then return 0 end
  local key = KEYS[1] .. ':state'
  local s = redis.call('HMGET', key, 'server', 'seen', 'until')
  local seen, till = tonumber(s[2]), tonumber(s[3])
  if s[1] ~= server or now - seen > GAP then
    seen, till = 0, now + QUIET
  end
  if now - seen > SEEN then
    redis.call('HSET', key, 'server', server, 'seen', string.format('%.0f', now),
               'until', string.format('%.0f', till))
    redis.call('PEXPIRE', key, 60000)
  end
  return max(0, till - now)
end
local function used(at, rest)
  if not at then return 0 end
  return max(0, min(DEBT, (tonumber(at) - now) * 1000 + tonumber(rest)))
end
local function read(name)
  local b = redis.call('HMGET', base .. ':b:' .. name, 'r', 'R', 't', 'T', 'm', 'M')
  local known = b[1] or b[3]
  local median = HOLD
  if b[5] and now - tonumber(b[6]) < FORGET then median = tonumber(b[5]) end
  return used(b[1], b[2]), used(b[3], b[4]), median, known
end
local function int(n) return string.format('%.0f', n) end
local function keep(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, int(ms)) end
end
-- Stores the use of one rate, and keeps the hash until the rate has recovered.
local function store(name, field, ns)
  local key = base .. ':b:' .. name
  local rest = fmod(ns, 1000)
  redis.call('HSET', key, field, int(now + (ns - rest) / 1000), string.upper(field), int(rest))
  keep(key, (ns - fmod(ns, 1000000)) / 1000000 + 1000)
end
local function ends(key, slot, at, life)
  redis.call('ZADD', key, int(at), slot)
  keep(key, life / 1000 + 1000)
end
local function record(slot)
  local raw = redis.call('GET', base .. ':l:' .. slot)
  local r = raw and cmsgpack.unpack(raw)
  if r and r[2] > now then return r end
  return nil
end
local function write(slot, r, life)
  redis.call('SET', base .. ':l:' .. slot, cmsgpack.pack(r), 'PX', int(life / 1000 + 1000))
end
-- The use of a minute: MinuteUse (domain/use.h), fields in the same order. The cells of an hour form a ring.
local USE, RING, REQUESTS, TOKENS, REQUESTS_PEAK, TOKENS_PEAK, RUNNING_PEAK, REFUSED =
  '<I4I4i8I4I4I4I4I4I4', 64, 2, 3, 4, 5, 6, 7
local MINUTE, TOLD, MOST = floor(now / 60000000), 60, 1000000000000
local function usekey(name) return base .. ':u:' .. name end
local function cell(name, minute)
  local raw = redis.call('HGET', usekey(name), int(fmod(minute, RING)))
  local c = raw and {struct.unpack(USE, raw)}
  if c and c[1] == minute then return c end
  if minute ~= MINUTE then return nil end
  return {minute, 0, 0, 0, 0, 0, 0, 0, 0, new = true}
end
local function put(name, c)
  local key = usekey(name)
  redis.call('HSET', key, int(fmod(c[1], RING)), struct.pack(USE, unpack(c, 1, 9)))
  if c.new then redis.call('PEXPIRE', key, (TOLD + 1) * 60000) end
end
local function raise(c, field, value)
  if value <= c[field] then return false end
  c[field] = value
  return true
end
local function us(ns) return (ns - fmod(ns, 1000)) / 1000 end
local function slots(name) return redis.call('ZCOUNT', base .. ':s:' .. name, '(' .. int(now), '+inf') end
local function renew(slot, r, life)
  -- The first renewal of a minute records the slots that were taken before it.
  local noted = r[2] > 0 and floor((r[2] - life) / 60000000) == MINUTE
  r[2] = now + life
  for _, s in ipairs(r[3]) do
    if s[5] == 1 then
      ends(base .. ':s:' .. s[1], slot, r[2], life)
      if not noted then
        local c = cell(s[1], MINUTE)
        if raise(c, RUNNING_PEAK, slots(s[1])) then put(s[1], c) end
      end
    end
  end
  write(slot, r, life)
end
)lua";

constexpr char kAcquire[] = R"lua(
local slot, life, take, tokens = ARGV[1], tonumber(ARGV[2]), ARGV[3] == 'take', tonumber(ARGV[4])
local held = take and record(slot)
local answer, subjects, granted, wait = {held and 1 or 0}, {}, true, nil
for a = 5, #ARGV, 9 do
  local s = {name = ARGV[a], shadow = ARGV[a + 1] == '1', r = tonumber(ARGV[a + 2]),
             t = tonumber(ARGV[a + 3]), tpm = tonumber(ARGV[a + 4]), slots = tonumber(ARGV[a + 5])}
  local ur, ut, median, known = read(s.name)
  local hint = ARGV[a + 6]
  if hint == '2' or (hint == '1' and not known) then
    local hr, ht = tonumber(ARGV[a + 7]), tonumber(ARGV[a + 8])
    -- Stored now, even if this claim is refused or in shadow mode: the caller sends the hint only once.
    if hint == '2' and take then
      if hr > ur then store(s.name, 'r', min(DEBT, hr)) end
      if ht > ut then store(s.name, 't', min(DEBT, ht)) end
    end
    ur, ut = max(ur, hr), max(ut, ht)
  end
  local running = 0
  if s.slots > 0 then
    local key = base .. ':s:' .. s.name
    redis.call('ZREMRANGEBYSCORE', key, '-inf', int(now))
    running = redis.call('ZCARD', key)
    s.running = running
    wait = wait or unsettled()
    if wait > 0 and not held then
      -- No slot is free, and the caller computes this wait from the median.
      running, median = max(running, s.slots), wait * s.slots
    end
  end
  s.ur, s.ut = ur, ut
  local refused = {s.r >= 0 and ur + min(s.r, WINDOW) > WINDOW,
                   s.slots > 0 and running >= s.slots,
                   s.t >= 0 and ut + min(s.t, WINDOW) > WINDOW}
  s.pass, s.refused = not (refused[1] or refused[2] or refused[3]), refused
  if not s.pass and not s.shadow then granted = false end
  subjects[#subjects + 1] = s
  answer[#answer + 1] = ur
  answer[#answer + 1] = ut
  answer[#answer + 1] = running
  answer[#answer + 1] = median
end
if held then
  renew(slot, held, life)
elseif take then
  for _, s in ipairs(subjects) do
    local running = s.running or 0
    if granted or not s.pass or running > 0 then
      local c = cell(s.name, MINUTE)
      local changed = raise(c, RUNNING_PEAK, running)
      if not s.pass then
        for i = 1, 3 do
          if s.refused[i] then c[REFUSED + i - 1] = c[REFUSED + i - 1] + 1 end
        end
        changed = true
      elseif granted then
        c[REQUESTS] = c[REQUESTS] + 1
        if s.r >= 0 then raise(c, REQUESTS_PEAK, us(min(DEBT, s.ur + s.r))) end
        if s.t >= 0 then
          c[TOKENS] = c[TOKENS] + tokens
          raise(c, TOKENS_PEAK, us(min(DEBT, s.ut + s.t)))
        end
        if s.slots > 0 then raise(c, RUNNING_PEAK, running + 1) end
        changed = true
      end
      if changed then put(s.name, c) end
    end
  end
end
if take and granted and not held then
  local r = {now, now + life, {}, tokens}
  for _, s in ipairs(subjects) do
    if s.pass then
      if s.r >= 0 then store(s.name, 'r', min(DEBT, s.ur + s.r)) end
      if s.t >= 0 then store(s.name, 't', min(DEBT, s.ut + s.t)) end
      if s.slots > 0 then ends(base .. ':s:' .. s.name, slot, now + life, life) end
      r[3][#r[3] + 1] = {s.name, max(s.r, 0), max(s.t, 0), s.tpm, s.slots > 0 and 1 or 0}
    end
  end
  write(slot, r, life)
end
return answer
)lua";

constexpr char kRelease[] = R"lua(
local slot, actual, refund = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local r = record(slot)
if not r then return 0 end
-- n * WINDOW / limit, rounded down, in steps that stay exact.
local function cost(n, limit)
  if n <= 0 then return 0 end
  if n >= 2 * limit then return DEBT end
  local total, rest = 0, n
  for _, factor in ipairs({1, 1000, 1000, 1000, 60}) do
    rest = rest * factor
    local left = fmod(rest, limit)
    total = total * factor + (rest - left) / limit
    rest = left
  end
  return min(DEBT, total)
end
local admitted = floor(r[1] / 60000000)
local counted = r[4] and r[4] >= 0 and admitted + TOLD > MINUTE
for _, s in ipairs(r[3]) do
  local name, cr, ct, tpm = s[1], s[2], s[3], s[4]
  local ur, ut, median, known = read(name)
  -- The cell of this minute, once it has changed.
  local c = nil
  if s[5] == 1 then
    local now_cell = cell(name, MINUTE)
    if raise(now_cell, RUNNING_PEAK, slots(name)) then c = now_cell end
    redis.call('ZREM', base .. ':s:' .. name, slot)
  end
  if counted and (refund or tpm > 0) then
    local of = admitted == MINUTE and c or cell(name, admitted)
    if of and not of.new then
      if refund then of[REQUESTS] = max(0, of[REQUESTS] - 1) end
      if tpm > 0 then
        of[TOKENS] = max(0, of[TOKENS] + (refund and 0 or min(MOST, max(0, actual))) - r[4])
      end
      if admitted == MINUTE then c = of else put(name, of) end
    end
  end
  if refund then
    if cr > 0 and ur > 0 then store(name, 'r', max(0, ur - cr)) end
    if ct > 0 and ut > 0 then store(name, 't', max(0, ut - ct)) end
  else
    if s[5] == 1 then
      local step = floor(median / 16) + 1
      if now - r[1] <= median then step = -step end
      redis.call('HSET', base .. ':b:' .. name, 'm', int(max(1, median + step)), 'M', int(now))
      keep(base .. ':b:' .. name, FORGET / 1000 + 1000)
    end
    if tpm > 0 then
      local used_ns = cost(actual, tpm)
      if used_ns > ct then
        local debt = min(DEBT, ut + used_ns - ct)
        store(name, 't', debt)
        c = c or cell(name, MINUTE)
        raise(c, TOKENS_PEAK, us(debt))
      elseif ut > 0 and used_ns < ct then
        store(name, 't', max(0, ut - (ct - used_ns)))
      end
    end
  end
  if c then put(name, c) end
end
redis.call('DEL', base .. ':l:' .. slot)
return 1
)lua";

constexpr char kRenew[] = R"lua(
local slot, life = ARGV[1], tonumber(ARGV[2])
local r = record(slot)
if r then
  renew(slot, r, life)
  return 1
end
if #ARGV < 3 then return 0 end
r = {now, 0, {}, -1}
for a = 3, #ARGV do r[3][#r[3] + 1] = {ARGV[a], 0, 0, 0, 1} end
renew(slot, r, life)
return 2
)lua";

constexpr char kWatch[] = R"lua(
redis.call('SET', KEYS[1] .. ':since', int(now), 'NX')
return unsettled()
)lua";

constexpr char kUse[] = R"lua(
local since = tonumber(redis.call('GET', KEYS[1] .. ':since')) or now
local answer = {now, now - since}
for _, name in ipairs(ARGV) do
  local ur, ut, median = read(name)
  answer[#answer + 1] = {ur, ut, slots(name), median, redis.call('HVALS', usekey(name))}
end
return answer
)lua";

constexpr char kPresence[] = R"lua(
local time = redis.call('TIME')
local now, life = time[1] * 1000000 + time[2], tonumber(ARGV[3])
local key = KEYS[1]
if life == 0 then
  redis.call('ZREM', key, ARGV[2])
else
  redis.call('ZADD', key, string.format('%.0f', now + life), ARGV[2])
  redis.call('PEXPIRE', key, string.format('%.0f', life / 1000 + 1000))
end
redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))
return redis.call('ZCARD', key)
)lua";

}  // namespace

const RedisScript& AcquireScript() {
  static const RedisScript script(std::string(kCommon) + kAcquire);
  return script;
}
const RedisScript& ReleaseScript() {
  static const RedisScript script(std::string(kCommon) + kRelease);
  return script;
}
const RedisScript& RenewScript() {
  static const RedisScript script(std::string(kCommon) + kRenew);
  return script;
}
const RedisScript& WatchScript() {
  static const RedisScript script(std::string(kCommon) + kWatch);
  return script;
}
const RedisScript& UseScript() {
  static const RedisScript script(std::string(kCommon) + kUse);
  return script;
}
const RedisScript& PresenceScript() {
  static const RedisScript script(kPresence);
  return script;
}

}  // namespace tollgate::ratelimit
