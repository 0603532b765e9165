"""A landscape as a table and as drawings."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from rlvr_exp.core.statistics import Estimate
from rlvr_exp.report.plots import Curve, Drawing, curves, heat_map

LOSS = "loss, nats a token"
OFFSET = "norms of rows"


def table(found: Mapping[str, Any]) -> str:
    lines = [
        f"gold answers of {found['tasks']} tasks, {found['weights']:,} weights: loss {found['loss']:.4f} nats a token"
    ]
    if "line" in found:
        last = fmean(found["line"]["losses"][-1])
        lines.append(f"to the other policy, {found['distance']:.3g} of the weights' norm away: loss {last:.4f}")
        lines.append(f"barrier {found['barrier']:.3g} above the straight line, at {found['barrier_at']:.0%} of the way")
    if found["eigenvalues"]:
        lines.append(
            "largest eigenvalues of the Hessian: " + ", ".join(f"{value:.4g}" for value in found["eigenvalues"])
        )
    lines.append(f"{'gradient of':<12}{'norm':>10}{'noise scale':>13}{'cosine':>9}")
    for place, one in found["gradients"].items():
        noise = "unknown" if one["noise_scale"] is None else f"{one['noise_scale']:.3g}"
        lines.append(f"{place:<12}{one['norm']:>10.3g}{noise:>13}{one['cosine']:>9.3f}")
    return "\n".join(lines)


def drawings(found: Mapping[str, Any]) -> dict[str, Drawing]:
    """By the name of their file."""
    slices = [Curve(f"{name} direction", points(one["at"], one["loss"])) for name, one in found["slices"].items()]
    drawn = {"slices": curves("Random directions", slices, OFFSET, LOSS)}
    if "line" in found:
        means = [fmean(losses) for losses in found["line"]["losses"]]
        way = [Curve("line", points(found["line"]["at"], means))]
        drawn["line"] = curves("Straight line to the other policy", way, "share of the way", LOSS)
    if "grid" in found:
        at, losses = found["grid"]["at"], found["grid"]["loss"]
        drawn["grid"] = heat_map(f"{LOSS}, in {OFFSET}", at, at, losses, "first direction", "second")
    if "plane" in found:
        plane, title, aside = found["plane"], f"{LOSS}, through both policies", f"{OFFSET} at random"
        drawn["plane"] = heat_map(title, plane["along"], plane["at"], plane["loss"], "share of the way", aside)
    return drawn


def points(at: list[float], losses: list[float]) -> list[tuple[float, Estimate]]:
    return [(x, Estimate(y, y, y)) for x, y in zip(at, losses, strict=True)]
