"""A stranger's first hour: the wheel in an empty environment, beside a cluster that refuses all."""
