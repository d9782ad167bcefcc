"""The machines that parts run on: this one, and hosts through their agents; and what this machine is."""
