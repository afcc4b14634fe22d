"""The plateau of a history: where the error stops falling.

It is the first iteration after which the error does not fall by more than 10 % within a window of 10 % of all
iterations, as in the paper. A start without progress is none: the error must have fallen by 10 % before.
"""

import math
from typing import Any

WINDOW, GAIN = 0.1, 0.1


def plateau(steps: Any, times: Any, errors: Any) -> dict[str, Any]:
    """{step, time, error} of the plateau, from arrays with one entry per iteration (NaN: error not evaluated).

    Where a run still improves at its end, the best of its iterations counts as the plateau.
    """
    seen = [i for i, error in enumerate(errors) if math.isfinite(error)]
    if not seen:
        return {"step": None, "time": None, "error": None}
    window = WINDOW * steps[-1]
    for i in seen:
        ahead = [errors[j] for j in seen if steps[i] < steps[j] <= steps[i] + window]
        if steps[i] + window > steps[seen[-1]]:
            break
        begun = errors[i] <= (1 - GAIN) * errors[seen[0]]
        if begun and ahead and min(ahead) >= (1 - GAIN) * errors[i]:
            return {"step": int(steps[i]), "time": float(times[i]), "error": float(errors[i])}
    best = min(seen, key=lambda j: errors[j])
    return {"step": int(steps[best]), "time": float(times[best]), "error": float(errors[best])}
