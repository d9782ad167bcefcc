"""Commands that a user types: each command is a module, over the floors below."""
