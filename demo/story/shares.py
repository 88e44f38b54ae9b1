"""The distribution of an application's tasks, as its instances report it."""

from __future__ import annotations

from caughtup.demo.apps.streams import StreamsApplication


def actives(application: StreamsApplication) -> dict[str, int]:
    """Return the number of active tasks of every instance."""
    return {name: _count(application, name)[0] for name in application.instances}


def is_balanced(application: StreamsApplication, tasks: int) -> bool:
    """Return whether all tasks run and are evenly distributed, and nothing warms up."""
    names = application.instances
    counts = [_count(application, name) for name in names]
    active = [one for one, _ in counts]
    return (
        sum(active) == tasks
        and max(active) - min(active) <= 1
        and not any(standby for _, standby in counts)
        and all(application.state(name) == "RUNNING" for name in names)
    )


def has_left_behind(application: StreamsApplication) -> bool:
    """Return whether an instance has a task on disk that is neither active nor standby there."""
    return any(
        application.tasks_on_disk(name)
        - {
            task
            for thread in application.threads(name).values()
            for task in (*thread.active, *thread.standby)
        }
        for name in application.instances
    )


def _count(application: StreamsApplication, name: str) -> tuple[int, int]:
    threads = application.threads(name).values()
    return sum(len(one.active) for one in threads), sum(len(one.standby) for one in threads)
