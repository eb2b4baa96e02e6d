-- The first pass over decisions about sliding windows, without shadows. It makes no function, which saves most of what a script
-- costs. What it cannot decide, such as entries from the future, it leaves to `decide`.
--
-- args   those of `check`; the cost is above 0
-- reply  now, then for each key of a decision the timestamp of the newest entry, or now, and the permits counted; if the call
--        is refused, the timestamp is negative, and when the cost will fit or 0 follows; or what `decide` returns for the
--        decision
local given = 4
--[[ first_pass.lua ]]
local tonumber = tonumber
-- Charges count from `earliest` on. A charge of now is in the sub-window from `here` to `beyond`; its key expires in `second`.
local cost, limit, earliest, here, beyond, second, unit, span
-- What each key held, the total to store, the second in which a key with a new entry expires, or 0 if it does already, the first
-- element that still counts, and when the cost of a refused call will fit. A table with room for one key need not grow for it.
local totals, newests, charged, seconds, trims, fits = {0}, {0}, {0}, {}, nil, nil
local reply, length, decide_fully, take_back = {now, 0, 0}, 1, nil, nil

for first = 1, #KEYS, size do
  local last, before, plain, admitted, written, failed = first + size - 1, length, true, true, first - 1, false
  for i = first, last do
    if each > 0 or i == 1 then
      local at = args + (i - 1) * each
      local period, precision = ARGV[at + 2] + 0, ARGV[at + 3] + 0
      cost, limit, unit = ARGV[at] + 0, ARGV[at + 1] + 0, precision > 0 and precision or 1
      here, span = now - now % unit, precision + period
      earliest, beyond = now - span - (now - span) % unit + unit, here + unit
      second = (here + span - (here + span) % 1000000) / 1000000 + 1
    end
    local key, counted, live, newest, total, oldest = KEYS[i], 0, 0, nil, nil, nil
    local head = call('LRANGE', key, '0', '1')
    if head[1] then
      local tail = call('LRANGE', key, '-2', '-1')
      local from = tonumber(head[1])
      oldest, newest, total = tonumber(head[2]), tonumber(tail[1]), tonumber(tail[2])
      -- Totals are less than times, which shows where an end of the list is missing. Comparisons with what is no number fail.
      if
        not (
          from and oldest and newest and total and total >= 0
          and from < oldest and total < oldest and newest >= oldest and newest < beyond
          and oldest % 1 == 0 and newest % 1 == 0 and total % 1 == 0
        )
      then
        plain = false
        break
      end
      if newest < earliest then
        trims = trims or {}
        trims[i] = '-3'
      else
        while oldest and oldest < earliest and live < 3 do
          live = live + 1
          local entry = call('LRANGE', key, 2 * live, 2 * live + 1)
          from, oldest = tonumber(entry[1]), tonumber(entry[2])
        end
        if not (from and oldest and from >= 0 and oldest >= earliest and oldest % 1 == 0) then plain = false break end
        if live > 0 then
          trims = trims or {}
          trims[i] = 2 * live
        end
        counted = (total - from) % 1125899906842624
        if counted % 1 ~= 0 then plain = false break end
      end
    elseif head.err then
      plain = false
      break
    end
    if counted + cost > limit then
      admitted, fits = false, fits or {}
      fits[i] = 0
      if cost <= limit then
        -- Mostly the cost fits when the oldest entry ends.
        local after = tonumber(call('LINDEX', key, 2 * live + 2))
        if not after or after % 1 ~= 0 or (total - after) % 1125899906842624 + cost > limit then plain = false break end
        fits[i] = oldest - oldest % unit + span
      end
    end
    charged[i], totals[i], newests[i] = ((total or 0) + cost) % 1125899906842624, total, newest
    if not total or newest < here then
      local was = total and newest - newest % unit + span
      seconds[i] = was and (was - was % 1000000) / 1000000 + 1 == second and 0 or second
    end
    reply[length + 1], reply[length + 2] = counted > 0 and newest or now, counted
    length = length + 2
  end

  for i = first, plain and admitted and last or 0 do
    local key, expires, result = KEYS[i], seconds[i], nil
    if not totals[i] then
      result = call('RPUSH', key, '0', now, charged[i])
    elseif expires then
      result = call('RPUSH', key, now, charged[i])
    else
      result = call('LSET', key, '-1', charged[i])
    end
    if type(result) == 'table' and result.err then failed = true break end
    written = i
    if expires and expires > 0 then
      result = call('EXPIREAT', key, expires)
      if type(result) == 'table' then failed = true break end
    end
  end
  for i = first, trims and plain and admitted and not failed and last or 0 do
    if trims[i] and call('LTRIM', KEYS[i], trims[i], '-1').err then failed = true break end
  end

  if failed or not plain then
    if not decide_fully then
      --[[ prelude.lua ]]
      --[[ sliding_window.lua ]]
      --[[ decide.lua ]]
      width, decide_fully = each, decide
      function take_back(i)
        local at = args + (i - 1) * each
        local period, precision = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
        local key, newest, pushed = KEYS[i], newests[i], seconds[i]
        -- A new key goes without asking for its length, which may be denied.
        local n = newest and entries(key) - 1
        restore({
          key = key, total = totals[i], newest = newest, n = n, pushed = pushed, raised = not pushed,
          expiry_set = pushed and pushed > 0, expires = ends(now, period, precision),
          was = newest and ends(newest, period, precision),
        })
      end
    end
    for i = first, written do pcall(take_back, i) end
    for i = before + 2, before + 2 * size do reply[i] = nil end
    length = before + 1
    reply[length] = decide_fully(first - 1, size, nil, args + (first - 1) * each)
    left = left - size
    if left <= 0 then return reply end
  elseif not admitted then
    for i = size, 1, -1 do
      local at = before + 3 * i
      reply[at - 2], reply[at - 1], reply[at] = -reply[at - i - 1], reply[at - i], fits[first + i - 1] or 0
    end
    length = before + 3 * size
  end
end
return decide_fully and reply or pack(reply)
