-- Load one sysbench table in the run phase: only there does sysbench 1.0 obey --rand-seed and tell of
-- a failure in its exit code. Tables and rows are made by sysbench's own oltp_common.

require("oltp_common")

sysbench.cmdline.options.table_number = {"Number of the table to create and load", 1}

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end

function event()
   create_table(drv, con, sysbench.opt.table_number)
end

function thread_done()
   con:disconnect()
end
