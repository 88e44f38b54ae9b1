"""What commands see of a cluster without a service, read by the service's own readers."""
