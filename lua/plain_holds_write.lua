    elseif kind == 10 then
      local read, field = found[f + 2], args[at + 5]
      if charged then
        result = call('HSET', key, 'sum', found[f + 3], field, found[f + 4])
        if type(result) == 'table' then failed = true break end
        done = i
        if read.second and type(call('EXPIREAT', key, read.second)) == 'table' then failed = true break end
      elseif found[f + 5] then
        local held = unpack_struct('<d', found[f + 3]) - cost
        call('HSET', key, 'sum', pack_struct('<d', held) .. string.sub(read[1], 9), field, found[f + 5])
      end
