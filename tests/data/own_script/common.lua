-- An event begins with a wait, as those of sysbench's own scripts do here: tests/programs.py.
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int);")

function pause()
   ffi.C.usleep(12000)
end

function connect()
   drv = sysbench.sql.driver()
   con = drv:connect()
end
