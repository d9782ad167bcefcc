require("common")

sysbench.cmdline.options = {accounts = {"Rows", 100}}

function prepare()
   connect()
   con:query("CREATE TABLE TABLE_NAME (id INT PRIMARY KEY, balance INT, made TIMESTAMP)")
   for id = 1, sysbench.opt.accounts do
      local balance = sysbench.rand.uniform(1, 1000)
      con:query(string.format("INSERT INTO TABLE_NAME VALUES (%d, %d, NOW())", id, balance))
   end
end

function thread_init()
   connect()
   con:query("SHOW VARIABLES LIKE 'version'")
end

function event()
   pause()
   local id = sysbench.rand.uniform(1, sysbench.opt.accounts)
   con:query("BEGIN")
   con:query("SELECT balance FROM TABLE_NAME WHERE id = " .. id)
   con:query("UPDATE TABLE_NAME SET balance = balance + 1 WHERE id = " .. id)
   con:query("COMMIT")
   EXTRA
end

function thread_done() con:disconnect() end
