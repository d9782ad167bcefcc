"""A Kubernetes cluster on Google's engine, made and removed by the provider's own tool when asked."""
