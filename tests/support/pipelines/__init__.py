"""Records, histories and a Spark cluster, for tests of the jobs."""
