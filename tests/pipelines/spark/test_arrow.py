from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from caughtup.pipelines.history.tables import TABLES
from caughtup.pipelines.spark.arrow import arrow_schema, to_arrow
from caughtup.pipelines.tables import Table

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_schema_is_the_one_that_spark_gives(spark: SparkSession, table: Table) -> None:
    found = to_arrow(spark.createDataFrame([], table.columns))
    assert found.num_rows == 0
    assert found.schema == arrow_schema(table.columns)
