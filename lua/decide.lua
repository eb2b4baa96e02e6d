-- Decides a list of decisions, each a list of charges, each decision all or nothing but for shadows.
--
-- KEYS   the key of every charge, in order; those of one decision are distinct
-- ARGV   for every decision the number of its charges, or where shadows are among them a letter for each, `s` for a
--        shadow and `r` for the others, which are required; then the `width` arguments of each
-- reply  now, then for every decision whether it is admitted, 1 or 0, and what each of its checks read, after that of a
--        shadow whether its rule admits it, 1 or 0; or in place of these the text of the error that one of them met, that
--        of a shadow in place of what its check read
--
-- The required charges decide: if all of them are admitted they are charged, and with them the shadows that are.
-- A charge that costs nothing only looks. Redis takes nothing back when a script fails, so a failure, which may come after a
-- charge, is caught, and every key is restored before it is told. That of a shadow only says that it admits nothing.

-- Stands for a shadow that failed.
local function failed(problem)
  return {told(problem), cost = 0, shadow = true}
end

local function settle(entry, admitted)
  if admitted then commit(entry) else undo(entry) end
  entry.done = true
end

local function decide_shadows(entries, admitted)
  for i, entry in ipairs(entries) do
    if entry.shadow and entry.cost > 0 then
      local fine, problem = pcall(function()
        settle(entry, admitted and entry.admits)
        if entry.tidy then entry.tidy(entry) end
      end)
      if not fine then
        pcall(restore, entry)
        entries[i] = failed(problem)
      end
    end
  end
end

-- Fills `entries` as far as it comes before a required charge fails.
local function decide(entries, first, size, kinds, at)
  local admitted = true
  for i = 1, size do
    if kinds and string.sub(kinds, i, i) == 's' then
      local fine, entry = pcall(check, KEYS[first + i], at)
      entries[i] = fine and entry or failed(entry)
      entries[i].shadow = true
    else
      local entry = check(KEYS[first + i], at)
      entries[i] = entry
      admitted = admitted and entry.admits
    end
    at = at + width
  end
  for _, entry in ipairs(entries) do
    if entry.cost > 0 and not entry.shadow then settle(entry, admitted) end
  end
  -- What this throws away does not come back, so every charge is made before.
  for _, entry in ipairs(entries) do
    if entry.tidy and not entry.shadow then entry.tidy(entry) end
  end
  if kinds then decide_shadows(entries, admitted) end
  return admitted
end

local reply = {now}
local k, at = 0, 1
while ARGV[at] do
  local size, kinds = tonumber(ARGV[at])
  if not size then size, kinds = #ARGV[at], ARGV[at] end
  local entries = {}
  local fine, admitted = pcall(decide, entries, k, size, kinds, at + 1)
  if fine then
    reply[#reply + 1] = admitted and 1 or 0
    for _, entry in ipairs(entries) do
      for _, number in ipairs(entry) do reply[#reply + 1] = number end
      if entry.shadow then reply[#reply + 1] = entry.admits and 1 or 0 end
    end
  else
    for _, entry in ipairs(entries) do pcall(restore, entry) end
    reply[#reply + 1] = told(admitted)
  end
  k, at = k + size, at + 1 + size * width
end
return reply
