-- Two transactions: a new order of five lines, and a payment.

local function anywhere()
   local uniform = sysbench.rand.uniform
   return uniform(1, sysbench.opt.scale), uniform(1, DISTRICTS), uniform(1, CUSTOMERS)
end

local function run(con, statement, ...) return con:query(statement:format(...)) end

function new_order(con, set)
   local w, d, c = anywhere()
   con:query("BEGIN")
   local order = con:query_row(("SELECT d_next_o_id FROM district%d WHERE d_w_id = %d AND d_id = %d FOR UPDATE")
      :format(set, w, d))
   run(con, "UPDATE district%d SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = %d AND d_id = %d", set, w, d)
   run(con, "INSERT INTO orders%d VALUES (%d, %d, %s, %d, NOW())", set, w, d, order, c)
   local item = sysbench.rand.uniform(1, ITEMS - 5)
   for line = 1, 5 do
      run(con, "UPDATE stock%d SET s_quantity = IF(s_quantity > 14, s_quantity - 5, s_quantity + 86) "
         .. "WHERE s_w_id = %d AND s_i_id = %d", set, w, item + line)
      run(con, "INSERT INTO order_line%d VALUES (%d, %d, %s, %d, %d, 5)", set, w, d, order, line, item + line)
   end
   con:query("COMMIT")
end

function payment(con, set)
   local w, d, c = anywhere()
   local amount = sysbench.rand.uniform(1, 5000)
   con:query("BEGIN")
   run(con, "UPDATE warehouse%d SET w_ytd = w_ytd + %d WHERE w_id = %d", set, amount, w)
   run(con, "UPDATE district%d SET d_ytd = d_ytd + %d WHERE d_w_id = %d AND d_id = %d", set, amount, w, d)
   run(con, "SELECT c_balance, c_data FROM customer%d WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", set, w, d, c)
   run(con, "UPDATE customer%d SET c_balance = c_balance - %d WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d",
      set, amount, w, d, c)
   con:query("COMMIT")
end
