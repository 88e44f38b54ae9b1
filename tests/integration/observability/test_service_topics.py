"""Every record that the real service publishes while everything happens at once is documented."""

from __future__ import annotations

from caughtup.models.records.topics import (
    CATCH_UP_RATES,
    END_OFFSETS,
    LAG,
    LEARNED_CONFIGS,
    MOVEMENTS,
    PIPELINE_PROGRESS,
    REASSIGNMENTS,
    RECOMMENDATIONS,
)
from tests.support.observability.scene import Scene
from tests.support.topics.published import require_valid

PUBLISHED = {
    END_OFFSETS: {"EndOffsetsRecord"},
    REASSIGNMENTS: {"ReassignmentRecord", "ClusterRecord"},
    RECOMMENDATIONS: {"RecommendationRecord"},
    LEARNED_CONFIGS: {"LearnedRecord"},
    MOVEMENTS: {"TaskMovementRecord", "PartitionMovementRecord"},
    LAG: {"PartitionLine", "CopyLine"},
    CATCH_UP_RATES: {"RatesRecord"},
    PIPELINE_PROGRESS: {"ProgressRecord"},
}


def test_every_record_is_as_its_topic_s_schema_says(scene: Scene) -> None:
    for topic, kinds in PUBLISHED.items():
        assert require_valid(scene.stage.cluster, [topic]) == kinds, topic
