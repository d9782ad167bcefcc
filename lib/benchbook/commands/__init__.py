"""What somebody types: each command is a module, over the floors below."""
