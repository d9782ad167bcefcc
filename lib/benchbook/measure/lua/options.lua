-- Prints the options that sysbench took, wherever they came from, and touches no database:
-- `sysbench ... options.lua show`. Accounts are left out.

local function written(value)
   if type(value) == "table" then
      return table.concat(value, ",")
   elseif type(value) == "boolean" then
      return value and "on" or "off"
   end
   return tostring(value)
end

function show()
   local names = {}
   for name in pairs(sysbench.opt) do
      if not name:find("password") and not name:find("user") then
         table.insert(names, name)
      end
   end
   table.sort(names)
   for _, name in ipairs(names) do
      print(name .. "=" .. written(sysbench.opt[name]))
   end
end

sysbench.cmdline.commands = {show = {show}}
