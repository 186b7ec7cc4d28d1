"""How good forecasts are, in numbers and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bemf.cli.output import lines

if TYPE_CHECKING:
    from bemf.forecast import Forecast
    from bemf.ratings import Ratings

THRESHOLDS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FEWEST = 20  # predictions of which an error is shown to people


def quality(truth: Ratings, forecast: Forecast) -> dict[str, Any]:
    """Errors, probabilities and reliabilities, and error and coverage by threshold; some pairs must be known."""
    from bemf import metrics
    from bemf.forecast import PointForecast

    if isinstance(forecast, PointForecast):  # of which there is less to say
        return {
            "ratings": len(truth),
            "known": float(forecast.known.mean()),
            "mae": metrics.mae(truth, forecast),
            "rmse": metrics.rmse(truth, forecast),
        }
    curve = metrics.by_threshold(truth, forecast, thresholds=THRESHOLDS)
    return {
        "ratings": len(truth),
        "known": float(forecast.known.mean()),
        "mae": metrics.mae(truth, forecast),
        "mae_of_median": metrics.mae(truth, forecast.by("median")),
        "rmse_of_mean": metrics.rmse(truth, forecast.by("mean")),
        "accuracy": metrics.accuracy(truth, forecast),
        "mean_reliability": float(forecast.reliability[forecast.known].mean()),
        "log_loss": metrics.log_loss(truth, forecast),
        "brier": metrics.brier(truth, forecast),
        "ece": metrics.ece(truth, forecast),
        "rpi": metrics.rpi(truth, forecast),
        "by_threshold": [
            {"min_reliability": cut, "mae": mae, "coverage": coverage}
            for cut, mae, coverage in zip(curve.cut.tolist(), curve.mae.tolist(), curve.coverage.tolist(), strict=True)
        ],
    }


def in_words(facts: dict[str, Any]) -> dict[str, str]:
    """The facts that `quality` found, as lines for people."""
    if "rmse" in facts:
        return {
            "ratings": f"{facts['ratings']:,}",
            "error": f"MAE {facts['mae']:.3f}, RMSE {facts['rmse']:.3f}",
            "known pairs": f"{facts['known']:.1%}",
        }
    return {
        "ratings": f"{facts['ratings']:,}",
        "error": f"MAE {facts['mae']:.3f} (by median {facts['mae_of_median']:.3f}), "
        f"RMSE {facts['rmse_of_mean']:.3f} by mean",
        "right": f"{facts['accuracy']:.1%} of predictions, where {facts['mean_reliability']:.1%} were promised "
        f"(calibration error {facts['ece']:.3f})",
        "probabilities": f"log-loss {facts['log_loss']:.3f}, Brier {facts['brier']:.3f}",
        "known pairs": f"{facts['known']:.1%}",
    }


def told(facts: dict[str, Any]) -> str:
    """The facts in words, and error and coverage by threshold where there are enough predictions."""
    by_threshold = f"\n\n{threshold_table(facts)}" if worth_showing(facts) else ""
    return lines(in_words(facts)) + by_threshold


def worth_showing(facts: dict[str, Any]) -> list[dict[str, float]]:
    """The thresholds with so many predictions left that their error says something."""
    return [row for row in facts.get("by_threshold", []) if row["coverage"] * facts["ratings"] >= FEWEST]


def threshold_table(facts: dict[str, Any]) -> str:
    """Error and coverage of predictions at least so reliable."""
    from bemf.words import table

    rows = worth_showing(facts)
    columns = {
        "reliability": [f"≥ {row['min_reliability']:.1f}" if row["min_reliability"] else "any" for row in rows],
        "MAE": [f"{row['mae']:.3f}" for row in rows],
        "predictions kept": [f"{row['coverage']:.1%}" for row in rows],
    }
    return table(columns)
