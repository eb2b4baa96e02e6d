-- The first pass over decisions about fixed windows, without shadows. It makes no function, which saves most of what a script
-- costs. What it cannot decide, such as a window from the future, it leaves to `decide`.
--
-- args   those of `check`; the cost is above 0
-- reply  now, then for each key of a decision what `check` replies, with a negative time if the call is refused; or what
--        `decide` returns for the decision
local given = 4
--[[ first_pass.lua ]]
local cost, limit, period, aligned
local match = string.match
-- What each key held, what it is to hold, and the second in which a new window expires. A table with room for one key need not
-- grow for it.
local values, charged, seconds = {0}, {0}, {}
local reply, length, decide_fully, take_back = {now, 0, 0}, 1, nil, nil

for first = 1, #KEYS, size do
  local last, before, plain, admitted, failed = first + size - 1, length, true, true, nil
  for i = first, last do
    if each > 0 or i == 1 then
      local at = args + (i - 1) * each
      cost, limit, period, aligned = ARGV[at] + 0, ARGV[at + 1] + 0, ARGV[at + 2] + 0, ARGV[at + 3] == '1'
    end
    local value = call('GET', KEYS[i])
    local opened, count, text = now, 0, nil
    if value then
      text, count = match(type(value) == 'string' and value or '', '^(%d+) (%d+)$')
      opened, count = (text or now) + 0, (count or 0) + 0
      local start = aligned and opened - opened % period or opened
      -- Lua itself writes numbers of up to 14 digits exactly.
      if not (text and start <= now and count < 1e14) then plain = false break end
      if now >= start + period then opened, count, text = now, 0, nil end
    end
    if count + cost > limit then
      admitted = false
    elseif text then
      charged[i] = text .. ' ' .. count + cost
    else
      local ends = (aligned and now - now % period or now) + period
      charged[i] = string.format('%.0f %.0f', now, cost)
      seconds[i] = (ends - ends % 1000000) / 1000000 + 1
    end
    values[i], reply[length + 1], reply[length + 2] = value, opened, count
    length = length + 2
  end

  for i = first, plain and admitted and last or 0 do
    local result
    if seconds[i] then
      result = call('SET', KEYS[i], charged[i], 'EXAT', seconds[i])
    else
      result = call('SET', KEYS[i], charged[i], 'KEEPTTL')
    end
    if result.err then failed = i break end
  end

  if failed or not plain then
    if not decide_fully then
      --[[ prelude.lua ]]
      --[[ fixed_window.lua ]]
      --[[ decide.lua ]]
      width, decide_fully = each, decide
      function take_back(i)
        local at, value, was = args + (i - 1) * each, values[i], nil
        if value then
          local opened, period = load(value), tonumber(ARGV[at + 2])
          was = start(opened, period, ARGV[at + 3] == '1') + period
        end
        restore_value({done = true, key = KEYS[i], value = value, was = was})
      end
    end
    for i = first, failed and failed - 1 or 0 do pcall(take_back, i) end
    for i = before + 2, before + 2 * size do reply[i] = nil end
    length = before + 1
    reply[length] = decide_fully(first - 1, size, nil, args + (first - 1) * each)
    left = left - size
    if left <= 0 then return reply end
  elseif not admitted then
    for i = before + 1, length, 2 do reply[i] = -reply[i] end
  end
end
return decide_fully and reply or pack(reply)
