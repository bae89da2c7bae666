"""What the author of a model vouches for, in whichever of its keys it is declared."""

from __future__ import annotations

from infold.core.model import Model, Override


def any_result_will_do(model: Model) -> bool:
    """Whether ``allow_nondeterministic`` is among a model's overrides, or its `incremental`'s."""
    incremental = model.incremental
    own = incremental.overrides if incremental is not None else ()
    return Override.NONDETERMINISTIC in (*model.overrides, *own)
