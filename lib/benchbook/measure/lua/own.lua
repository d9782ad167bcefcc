-- Runs the `prepare` of a script of the user's in the run phase, with one thread: only there does sysbench 1.0
-- obey --rand-seed and tell of a failure in its exit code. NOW() stands still, so that the same seed makes the
-- same rows in every copy of the data.

assert(loadfile(os.getenv("BENCHBOOK_SCRIPT")))()

local command = (sysbench.cmdline.commands or {}).prepare
local own = command and command[1] or prepare

-- The tables of oltp_common are loaded by load.lua.
if own and debug.getinfo(own, "S").source:find("oltp_common", 1, true) then
   own = nil
end

local driver = sysbench.sql.driver
function sysbench.sql.driver(...)
   local drv = driver(...)
   return setmetatable({}, {__index = function(_, key)
      local found = drv[key]
      if key == "connect" then
         return function()
            local con = drv:connect()
            con:query("SET timestamp = 1700000000")
            return con
         end
      end
      return type(found) == "function" and function(_, ...) return found(drv, ...) end or found
   end})
end

thread_init, thread_done, sysbench.hooks = nil, nil, {}

function event()
   math.randomseed(tonumber(os.getenv("BENCHBOOK_SEED")))
   if own then
      own()
   end
end
