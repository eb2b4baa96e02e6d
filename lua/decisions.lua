-- Makes decisions, each about a list of charges.
--
-- KEYS   the key of each charge, in order; the keys of one decision are distinct
-- ARGV   for each decision the number of its charges, or if there are shadows a letter for each charge; then the `width`
--        arguments of each charge
-- reply  now, then what `decide` returns for each decision
local reply, offset, at = {now}, 0, 1
while ARGV[at] do
  local size, kinds = tonumber(ARGV[at])
  if not size then size, kinds = #ARGV[at], ARGV[at] end
  reply[#reply + 1] = decide(offset, size, kinds, at + 1)
  offset, at = offset + size, at + 1 + size * width
end
return reply
