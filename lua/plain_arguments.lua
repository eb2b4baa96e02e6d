    if next_at > #packed then
      size, form, packed, next_at, given = ARGV[given + 1] + 0, ARGV[given + 2], ARGV[given + 3], 1, given + 3
      differing = nil
    end
    if next_at > 1 then
      if not differing then
        form, next_at = unpack_struct('s', packed, next_at)
        differing = {byte(packed, next_at, next_at + #form - 2)}
        next_at = next_at + #differing
      end
      local some = {unpack_struct(form, packed, next_at)}
      for i = 1, #differing do args[differing[i]] = some[i] end
      next_at = some[#some]
    elseif #form < 500 then
      args = {unpack_struct(form, packed, next_at)}
      next_at = args[#args]
    else
      -- Lua's stack holds only some thousands of values.
      args = {}
      for from = 2, #form, 500 do
        local some = {unpack_struct('<' .. string.sub(form, from, from + 499), packed, next_at)}
        next_at = some[#some]
        for i = 1, #some - 1 do args[#args + 1] = some[i] end
      end
    end
    has_more = next_at <= #packed or ARGV[given + 2]
