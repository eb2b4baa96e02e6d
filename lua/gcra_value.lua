-- Parses the value of a plain bucket, or returns nil if it has another layout.
local function load_plain(value)
  local tat, written, credited, till, slot = string.match(value, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if tat then
    local bucket = {
      tat = parse(tat), written = parse(written), credited = parse(credited), till = parse(till),
      slot = parse(slot),
    }
    return within_reach(bucket.tat, bucket.written) and bucket or corrupt()
  end
  tat = string.match(value, '^%d+$')
  return tat and {tat = parse(tat)}
end
