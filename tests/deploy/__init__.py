"""What the service is run by on others' machines: the Helm chart, the systemd unit."""
