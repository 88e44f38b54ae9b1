"""An application's parameters, for a service's settings."""

from __future__ import annotations

import json

from caughtup.demo.apps.streams import StreamsApplication
from tests.support.service import Service


def add_parameters(service: Service, application: StreamsApplication) -> None:
    """Add an application's parameters to a service's settings; start the service afterwards."""
    ((name, parameters),) = application.parameters.items()
    changelogs = parameters.pop("changelogs")
    lines = [f'[applications."{name}"]']
    lines += [f'"{config}" = {value}' for config, value in parameters.items()]
    lines += [f'[applications."{name}".changelogs]']
    lines += [f'"{number}" = {json.dumps(topics)}' for number, topics in changelogs.items()]
    with service.settings_file.open("a") as file:
        file.write("\n".join(lines) + "\n")
