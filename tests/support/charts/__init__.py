"""The chart's schema of values, and what reads what the chart makes."""
