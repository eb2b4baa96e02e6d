-- Stands in for one algorithm where the charges of a list have several: the name of each comes before its arguments,
-- and those of the narrower ones are filled up.
local width = 6

local function check(key, at)
  local algorithm = algorithms[ARGV[at]]
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
