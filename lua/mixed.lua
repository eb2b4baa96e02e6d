-- Stands in for an algorithm if the charges have several. The name of each charge's algorithm precedes its arguments,
-- which are padded to the same number.
local width = 6

-- The algorithms of this call. The functions of the others are not even made.
local used = {}

local function check(key, at)
  local name = ARGV[at]
  local algorithm = used[name] or algorithms[name]()
  used[name] = algorithm
  local entry = algorithm.check(key, at + 1)
  entry.algorithm = algorithm
  return entry
end

local function commit(entry)
  entry.algorithm.commit(entry)
end

local function undo(entry)
  entry.algorithm.undo(entry)
end

local function restore(entry)
  entry.algorithm.restore(entry)
end
