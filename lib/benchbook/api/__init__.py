"""What `import benchbook as bb` offers to people who look by hand; it reads what the pipeline left."""
