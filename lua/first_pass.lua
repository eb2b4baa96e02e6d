-- Begins a first pass over decisions about plain charges, each with `given` arguments.
--
-- KEYS   the keys of each decision, `size` of them, which are distinct
-- ARGV   `size`, unless it is 1; then the arguments of each key, or once if all have the same
local call, type, KEYS, ARGV = redis.pcall, type, KEYS, ARGV
-- A reply is packed, as clients read that much faster than a number at a time, unless a decision is left to `decide`.
local pack = cmsgpack.pack
local size, args = 1, 1
if #ARGV % given == 1 then size, args = ARGV[1] + 0, 2 end
-- The distance between the arguments of two keys.
local each = ARGV[args + given] and given or 0
-- How many charges may be left to `decide`, which takes many times as long. Then the rest of the call is not decided.
local left = 9
