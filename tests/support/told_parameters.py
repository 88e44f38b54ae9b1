"""What an application runs with, told in the settings of a service."""

from __future__ import annotations

import json

from caughtup.demo.apps.streams import StreamsApplication
from tests.support.service import Service


def tell_parameters(service: Service, application: StreamsApplication) -> None:
    """Add to a service's settings what an application runs with; it is started afterwards."""
    ((name, parameters),) = application.parameters.items()
    changelogs = parameters.pop("changelogs")
    lines = [f'[applications."{name}"]']
    lines += [f'"{config}" = {value}' for config, value in parameters.items()]
    lines += [f'[applications."{name}".changelogs]']
    lines += [f'"{number}" = {json.dumps(topics)}' for number, topics in changelogs.items()]
    with service.settings_file.open("a") as file:
        file.write("\n".join(lines) + "\n")
