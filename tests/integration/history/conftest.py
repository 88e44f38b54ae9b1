"""A cluster for the jobs on Spark that has users with rights."""

from __future__ import annotations

import pytest

from caughtup.demo.cluster.broker_config import Security, Tls
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.conftest import MakeCluster


@pytest.fixture
def secure(make_cluster: MakeCluster, tls: Tls) -> EmbeddedCluster:
    """TLS, passwords and an authorizer: an admin, and a user for the jobs that may do nothing yet."""
    users = {"admin": "admin's", "spark": 'back\\slash and "quotes"'}
    return make_cluster(security=Security("sasl_ssl", users=users, authorizer=True, tls=tls))
