#include "services/ratelimit/redis/scripts.h"

namespace tollgate::ratelimit {
namespace {

// Shared by the scripts: the time, whether Redis knows the leases, and the subjects' state.
constexpr char kCommon[] = R"lua(
local server, base, GAP, now = ARGV[1], KEYS[1] .. ':' .. ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ARGV = {unpack(ARGV, 5)}
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local WINDOW, DEBT, FORGET, HOLD = 60000000000, 120000000000, 600000000, 2000000
local fmod, floor, max, min = math.fmod, math.floor, math.max, math.min
-- Microseconds until all leases of running requests are here again; 0: they are. Not known after
-- this key was lost, or the server has changed, or nobody has come for so long that leases may have
-- expired that nobody could renew.
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
-- Stores what is used of one rate, and keeps the hash until it has recovered.
local function store(name, field, ns)
  local key = base .. ':b:' .. name
  local rest = fmod(ns, 1000)
  redis.call('HSET', key, field, int(now + (ns - rest) / 1000), string.upper(field), int(rest))
  keep(key, (ns - fmod(ns, 1000000)) / 1000000 + 1000)
end
local function ends(key, lease, at, life)
  redis.call('ZADD', key, int(at), lease)
  keep(key, life / 1000 + 1000)
end
local function record(lease)
  local raw = redis.call('GET', base .. ':l:' .. lease)
  local r = raw and cmsgpack.unpack(raw)
  if r and r[2] > now then return r end
  return nil
end
local function write(lease, r, life)
  redis.call('SET', base .. ':l:' .. lease, cmsgpack.pack(r), 'PX', int(life / 1000 + 1000))
end
local function renew(lease, r, life)
  r[2] = now + life
  for _, s in ipairs(r[3]) do
    if s[5] == 1 then ends(base .. ':s:' .. s[1], lease, r[2], life) end
  end
  write(lease, r, life)
end
)lua";

constexpr char kAcquire[] = R"lua(
local lease, life, take = ARGV[1], tonumber(ARGV[2]), ARGV[3] == 'take'
local held = take and record(lease)
local answer, subjects, granted, wait = {held and 1 or 0}, {}, true, nil
for a = 4, #ARGV, 9 do
  local s = {name = ARGV[a], shadow = ARGV[a + 1] == '1', r = tonumber(ARGV[a + 2]),
             t = tonumber(ARGV[a + 3]), tpm = tonumber(ARGV[a + 4]), slots = tonumber(ARGV[a + 5])}
  local ur, ut, median, known = read(s.name)
  local hint = ARGV[a + 6]
  if hint == '2' or (hint == '1' and not known) then
    local hr, ht = tonumber(ARGV[a + 7]), tonumber(ARGV[a + 8])
    -- Stored now, even if this claim is refused or in shadow mode: the caller says it only once.
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
    wait = wait or unsettled()
    if wait > 0 and not held then
      -- No slot is free, and the caller computes this wait from the median.
      running, median = max(running, s.slots), wait * s.slots
    end
  end
  s.ur, s.ut = ur, ut
  s.pass = (s.r < 0 or ur + min(s.r, WINDOW) <= WINDOW)
       and (s.t < 0 or ut + min(s.t, WINDOW) <= WINDOW)
       and (s.slots == 0 or running < s.slots)
  if not s.pass and not s.shadow then granted = false end
  subjects[#subjects + 1] = s
  answer[#answer + 1] = ur
  answer[#answer + 1] = ut
  answer[#answer + 1] = running
  answer[#answer + 1] = median
end
if held then
  renew(lease, held, life)
elseif take and granted then
  local r = {now, now + life, {}}
  for _, s in ipairs(subjects) do
    if s.pass then
      if s.r >= 0 then store(s.name, 'r', min(DEBT, s.ur + s.r)) end
      if s.t >= 0 then store(s.name, 't', min(DEBT, s.ut + s.t)) end
      if s.slots > 0 then ends(base .. ':s:' .. s.name, lease, now + life, life) end
      r[3][#r[3] + 1] = {s.name, max(s.r, 0), max(s.t, 0), s.tpm, s.slots > 0 and 1 or 0}
    end
  end
  write(lease, r, life)
end
return answer
)lua";

constexpr char kRelease[] = R"lua(
local lease, actual, refund = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local r = record(lease)
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
for _, s in ipairs(r[3]) do
  local name, cr, ct, tpm = s[1], s[2], s[3], s[4]
  local ur, ut, median, known = read(name)
  if s[5] == 1 then redis.call('ZREM', base .. ':s:' .. name, lease) end
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
        store(name, 't', min(DEBT, ut + used_ns - ct))
      elseif ut > 0 and used_ns < ct then
        store(name, 't', max(0, ut - (ct - used_ns)))
      end
    end
  end
end
redis.call('DEL', base .. ':l:' .. lease)
return 1
)lua";

constexpr char kRenew[] = R"lua(
local lease, life = ARGV[1], tonumber(ARGV[2])
local r = record(lease)
if r then
  renew(lease, r, life)
  return 1
end
if #ARGV < 3 then return 0 end
r = {now, 0, {}}
for a = 3, #ARGV do r[3][#r[3] + 1] = {ARGV[a], 0, 0, 0, 1} end
renew(lease, r, life)
return 2
)lua";

constexpr char kWatch[] = R"lua(
return unsettled()
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
const RedisScript& PresenceScript() {
  static const RedisScript script(kPresence);
  return script;
}

}  // namespace tollgate::ratelimit
