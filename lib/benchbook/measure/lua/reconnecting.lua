-- Runs a script whose server goes away as planned: each thread opens its lost session again, which sysbench's own
-- way (--mysql-ignore-errors) does not survive. The transaction that was lost counts as an ignored error.

local LOST = {[1053] = true, [1927] = true, [2002] = true, [2003] = true, [2006] = true, [2013] = true, [2055] = true}
local script = os.getenv("BENCHBOOK_SCRIPT")
if script:find("%.lua$") then assert(loadfile(script))() else require(script) end

local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int);")
-- What belongs to a lost session must not be freed: its end would be sent to a server that is gone.
local kept = {}

sysbench.hooks.before_restart_event = nil
function sysbench.hooks.sql_error_ignorable(err)
   if not LOST[err.sql_errno] then return false end
   kept[#kept + 1] = {con, drv, stmt, param}
   repeat ffi.C.usleep(20000) until pcall(thread_init)
   return true
end
