"""The machines that parts run on: this one, hosts through their agents; facts of this machine."""
