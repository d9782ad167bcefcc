"""The interface `import benchbook as bb` for work by hand; it reads the pipeline's output."""
