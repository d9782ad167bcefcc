-- Load one sysbench table in the run phase: only there does sysbench 1.0 obey --rand-seed and tell of
-- a failure in its exit code. Tables and rows are made by sysbench's own oltp_common.
--
-- --index-first makes the secondary index before the rows. With --auto-inc=off the rows get ids 1, 2, 3 ...
-- from here, and the table still gives ids of its own to rows that come later.

require("oltp_common")

sysbench.cmdline.options.table_number = {"Number of the table to create and load", 1}
sysbench.cmdline.options.index_first = {"Create the secondary index before the rows", false}

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end

-- What create_table does to a connection, with two statements changed on their way.
local function watched(con, table_num)
   local index = string.format("CREATE INDEX k_%d ON sbtest%d(k)", table_num, table_num)
   local through = {}
   function through:query(text)
      if text:find("CREATE TABLE", 1, true) then
         if not sysbench.opt.auto_inc then
            text = text:gsub("id INTEGER NOT NULL", "id INTEGER NOT NULL AUTO_INCREMENT", 1)
         end
         con:query(text)
         if sysbench.opt.index_first then
            con:query(index)
         end
      elseif not (sysbench.opt.index_first and text == index) then
         con:query(text)
      end
   end
   function through:bulk_insert_init(text) con:bulk_insert_init(text) end
   function through:bulk_insert_next(text) con:bulk_insert_next(text) end
   function through:bulk_insert_done() con:bulk_insert_done() end
   return through
end

function event()
   create_table(drv, watched(con, sysbench.opt.table_number), sysbench.opt.table_number)
end

function thread_done()
   con:disconnect()
end
