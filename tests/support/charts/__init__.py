"""The chart's schema of values, and readers of its rendered manifests."""
