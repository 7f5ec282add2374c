"""docs/operations.md lists every metric that there is."""

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from vcjob.operator import observing
from vcjob.operator.metrics import Metrics
from vcjob.webhook.metrics import WebhookMetrics

PAGE = (Path(__file__).parents[3] / "docs/operations.md").read_text()
GAUGES = set(re.findall(r'"((?:workqueue|controller_runtime|vcjob)_\w+)"', Path(observing.__file__).read_text()))


def names(registry: CollectorRegistry) -> set[str]:
    """Return the names under which a registry's metrics are scraped, without those of the process itself."""
    families = [family for family in registry.collect() if not family.name.startswith("process_")]
    return {f"{family.name}_total" if family.type == "counter" else family.name for family in families}


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(names(Metrics().registry), id="operator"),
        pytest.param(GAUGES, id="operator's gauges"),
        pytest.param(names(WebhookMetrics().registry), id="webhook"),
    ],
)
def test_every_metric_is_listed(listed: set[str]) -> None:
    documented = set(re.findall(r"[a-z]+(?:_[a-z]+)+", PAGE))
    assert len(listed) > 5
    assert listed - documented == set()
