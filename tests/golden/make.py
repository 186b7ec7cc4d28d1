"""Makes the golden files of the present format: a model, and what it says.

Run it once when the format gets a new number, and keep the files of the old ones: they are what shows that
old models still load.
"""

from __future__ import annotations

import json
from pathlib import Path

import bemf
from bemf.persistence import FORMAT

RATINGS = [
    ("zoë", "Alien", 5),
    ("zoë", "Brazil", 4),
    ("zoë", "千と千尋", 1),
    ("bob", "Alien", 4),
    ("bob", "Brazil", 5),
    ("bob", "Diva", 2),
    ("cem", "Alien", 1),
    ("cem", "千と千尋", 5),
    ("cem", "Diva", 4),
    ("dia", "Brazil", 1),
    ("dia", "千と千尋", 4),
    ("dia", "Diva", 5),
]


def main() -> None:
    """Writes bemf-format-N.bemf and bemf-format-N.json beside this file."""
    users, items, scores = zip(*RATINGS, strict=True)
    ratings = bemf.Ratings.from_arrays(users, items, scores, scores=[1, 2, 3, 4, 5])
    model = bemf.BeMF(n_factors=2, n_iterations=5, regularization=0.5, biases=True, solver="mm", random_state=7)
    model.fit(ratings)
    pairs = [(user, item) for user in dict.fromkeys(users) for item in dict.fromkeys(items)]
    forecast = model.forecast(pairs)
    said = {
        "pairs": pairs,
        "probabilities": forecast.probabilities.tolist(),
        "prediction": forecast.prediction.tolist(),
        "parameters": model.get_params(),
        "history": model.history_,
        "fingerprint": model.fingerprint_,
    }
    stem = Path(__file__).with_name(f"bemf-format-{FORMAT}")
    model.save(stem.with_suffix(".bemf"))
    stem.with_suffix(".json").write_text(json.dumps(said, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
