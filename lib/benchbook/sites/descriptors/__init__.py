"""What each engine and proxy that comes with us says of itself: a module each, read at every start."""
