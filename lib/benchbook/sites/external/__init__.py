"""An endpoint that others run: no part of it is ours but the clients."""
