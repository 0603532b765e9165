"""Options of the node `report`, which exists under +stage=report alone."""

from dataclasses import dataclass, field


@dataclass
class Report:
    """Options of +stage=report."""

    run: str = ""
    """Run directory whose report.html is rewritten; nothing else in it is touched."""
    beside: list[str] = field(default_factory=list)
    """Further run directories, plotted on the same page."""
