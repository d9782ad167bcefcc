"""A Kubernetes cluster that you name: pods and Services, made and read through its API."""
