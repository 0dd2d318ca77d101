"""What the tests of the figures share: reading Prometheus' text."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families


class Figures:
    """The samples of one scrape: `figures("recap_turns_total", outcome="answered")` adds up those that match."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families = list(text_string_to_metric_families(text))
        self._samples = [sample for family in self.families for sample in family.samples]

    def __call__(self, name: str, **labels: str) -> float:
        return sum(
            sample.value for sample in self._samples if sample.name == name and labels.items() <= sample.labels.items()
        )

    @property
    def names(self) -> set[str]:
        """Every metric's name, counters' with the `_total` they are read by."""
        return {f"{one.name}_total" if one.type == "counter" else one.name for one in self.families}

    @property
    def labels(self) -> set[str]:
        """Every value of every label."""
        return {value for sample in self._samples for value in sample.labels.values()}


def scraped(client: Any, **headers: str) -> Figures:
    """The figures as Flask's test client gets them."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Figures(answer.text)
