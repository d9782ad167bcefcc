-- Options and tables: warehouse, district, customer, stock, orders, order_line, each with the number of its set.

DISTRICTS, CUSTOMERS, ITEMS = 10, 30, 100

sysbench.cmdline.options = {
   tables = {"Sets of tables", 1},
   scale = {"Warehouses of a set", 1},
   use_fk = {"Foreign keys", 1},
   trx_level = {"Isolation: RC, RR or SER", "RR"},
}

local LEVELS = {RC = "READ COMMITTED", RR = "REPEATABLE READ", SER = "SERIALIZABLE"}

function set_isolation(con)
   con:query("SET SESSION TRANSACTION ISOLATION LEVEL " .. LEVELS[sysbench.opt.trx_level])
end

local TABLES = {
   warehouse = "w_id INT PRIMARY KEY, w_ytd DECIMAL(12,2)",
   district = "d_w_id INT, d_id INT, d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id)",
   customer = "c_w_id INT, c_d_id INT, c_id INT, c_balance DECIMAL(12,2), c_since DATETIME, "
      .. "c_data VARCHAR(250), PRIMARY KEY (c_w_id, c_d_id, c_id)",
   stock = "s_w_id INT, s_i_id INT, s_quantity INT, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id)",
   orders = "o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_entry_d DATETIME, "
      .. "PRIMARY KEY (o_w_id, o_d_id, o_id)",
   order_line = "ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_i_id INT, ol_quantity INT, "
      .. "PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
}
local ORDER = {"warehouse", "district", "customer", "stock", "orders", "order_line"}

local function insert(con, name, row, last)
   con:bulk_insert_init("INSERT INTO " .. name .. " VALUES")
   for number = 1, last do con:bulk_insert_next(row(number)) end
   con:bulk_insert_done()
end

local function load_warehouse(con, set, w)
   local uniform, text = sysbench.rand.uniform, sysbench.rand.string
   con:query(("INSERT INTO warehouse%d VALUES (%d, 300000)"):format(set, w))
   insert(con, "district" .. set, function(d) return ("(%d, %d, 30000, 1)"):format(w, d) end, DISTRICTS)
   for d = 1, DISTRICTS do
      insert(con, "customer" .. set, function(c)
         return ("(%d, %d, %d, %d, NOW(), '%s')"):format(w, d, c, uniform(1, 5000), text(("@"):rep(200)))
      end, CUSTOMERS)
   end
   insert(con, "stock" .. set, function(i)
      return ("(%d, %d, %d, '%s')"):format(w, i, uniform(10, 100), text(("@"):rep(40)))
   end, ITEMS)
end

function cmd_prepare()
   local con = sysbench.sql.driver():connect()
   for set = 1 + sysbench.tid % sysbench.opt.threads, sysbench.opt.tables, sysbench.opt.threads do
      for _, name in ipairs(ORDER) do
         con:query(("CREATE TABLE %s%d (%s) ENGINE=InnoDB"):format(name, set, TABLES[name]))
      end
      if sysbench.opt.use_fk == 1 then
         con:query(("ALTER TABLE district%d ADD FOREIGN KEY (d_w_id) REFERENCES warehouse%d (w_id)"):format(set, set))
      end
      for w = 1, sysbench.opt.scale do load_warehouse(con, set, w) end
   end
   con:disconnect()
end

sysbench.cmdline.commands = {prepare = {cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND}}
