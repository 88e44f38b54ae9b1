"""Hadoop's URIs and options as the Delta library wants them; and what is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.store import Store, store_of

SECRET = "wJalrXUtnFEMI"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("/data/history/", "/data/history"),
        ("file:///data/my%20history", "/data/my history"),
        ("file:/data/history", "/data/history"),
        ("s3a://lake/history", "s3://lake/history"),
        ("s3n://lake/history/", "s3://lake/history"),
        ("gs://lake/history", "gs://lake/history"),
        ("abfs://c@account.dfs.core.windows.net/h", "abfss://c@account.dfs.core.windows.net/h"),
        ("hdfs://name:8020/history", "hdfs://name:8020/history"),
    ],
)
def test_a_place_has_the_librarys_name(uri: str, expected: str) -> None:
    assert store_of(uri, environment={}).uri == expected


def test_a_path_is_where_hadoop_says_that_paths_are(tmp_path: Path) -> None:
    options = {"fs.defaultFS": "hdfs://name:8020/"}
    assert store_of("/history", options.get, {}).uri == "hdfs://name:8020/history"
    assert store_of("history", {"fs.defaultFS": "file:///"}.get, {}).uri == str(
        Path("history").absolute()
    )


def test_s3as_options_count_before_the_environments_and_a_buckets_before_all() -> None:
    options = {
        "fs.s3a.access.key": "everybody",
        "fs.s3a.bucket.lake.access.key": "AKIA",
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.endpoint": "store:9000",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": "eu-central-1",
    }
    environment = {"AWS_ACCESS_KEY_ID": "other", "AWS_SESSION_TOKEN": "t", "AZURE_X": "no"}
    assert store_of("s3a://lake/h", options.get, environment).options == {
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": "t",
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": "http://store:9000",
        "AWS_ALLOW_HTTP": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
    }


def test_azures_key_is_its_accounts_and_googles_is_a_file() -> None:
    azure = {"fs.azure.account.key.a.dfs.core.windows.net": SECRET}
    found = store_of("abfss://c@a.dfs.core.windows.net/h", azure.get, {})
    assert found.options == {"AZURE_STORAGE_ACCOUNT_KEY": SECRET}
    google = {"google.cloud.auth.service.account.json.keyfile": "/key.json"}
    assert store_of("gs://lake/h", google.get, {}).options == {
        "GOOGLE_SERVICE_ACCOUNT": "/key.json"
    }


def test_a_file_system_that_the_library_does_not_know_is_refused() -> None:
    with pytest.raises(
        CaughtupError, match="tables cannot be at ftp://x/y: the known schemes are file, s3"
    ):
        store_of("ftp://x/y")


def test_secrets_are_neither_shown_nor_said() -> None:
    store = Store("s3://lake", {"AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu"})
    assert SECRET not in repr(store)
    error = OSError(f"\x1b[31m Generic S3 error:\n  ↳ 403 for {SECRET}\n  in eu\x1b[0m")
    assert store.describe(error) == "Generic S3 error: 403 for ***: in eu"
