--[[ prelude.lua ]]

-- Returns an algorithm by its number. The functions of those that no charge needs are not even made.
local made = {}
local function algorithm(kind)
  local algorithm = made[kind]
  if algorithm then return algorithm end
  --[[ branches ]]
  made[kind] = algorithm
  return algorithm
end
