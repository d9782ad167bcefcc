"""PostgreSQL as the OS package ships it."""
