#!/usr/bin/env sysbench
-- A small relative of TPC-C in sysbench-tpcc's layout: this script, its tables in tpcc_common, its transactions
-- in tpcc_run; tables for each of --tables, warehouses by --scale. It is made for tests, not for results.

require("tpcc_common")
require("tpcc_run")

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   set_isolation(con)
end

function event()
   local set = sysbench.rand.uniform(1, sysbench.opt.tables)
   if sysbench.rand.uniform(1, 100) <= 45 then new_order(con, set) else payment(con, set) end
end

function thread_done() con:disconnect() end
