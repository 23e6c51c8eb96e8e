"""Why a database lacks a predictor or the estimates of groups: the one condition that fails."""

from __future__ import annotations

from disco_cli.database import Database

LINEAR = ("ridge", "anchored-ridge", "offset-ridge", "blend")
PREDICTORS = ("auto", "rf", "knn", *LINEAR)


def why_no_predictor(database: Database, name: str) -> str | None:
    """Return why a database cannot estimate with a predictor, ``None`` if it can."""
    if name not in PREDICTORS:
        return f"no such predictor; choose one of {', '.join(PREDICTORS)}"
    if name == "auto":
        return _why_no_recipe(database)
    if name in LINEAR and "linear.npz" not in database.parts:
        return _why_no_responses(database)
    return _why_no_offset(database) if name == "offset-ridge" else None


def why_no_groups(database: Database, predictor: str) -> str | None:
    """Return why groups of samples cannot be estimated, ``None`` if they can."""
    reason = _why_no_recipe(database)
    if reason is None and len(database.references.get("group_names", ())) == 0:
        return "the files that the database was built from name no `groups`"
    if reason is None and predictor != "auto":
        return f"groups are estimated by the predictor auto, not by {predictor}"
    return reason


def _why_no_recipe(database: Database) -> str | None:
    if "recipe.npz" in database.parts:
        return None
    return _why_no_responses(database) or _own_units(database)


def _why_no_offset(database: Database) -> str | None:
    """Return why there is no mean of the design to start from, given responses."""
    if not database.manifest.comparable:
        return _own_units(database)
    if database.selection.draw.weights is None:
        return (
            "needs samples that were drawn at random, and those of the selection were chosen "
            f"(method {database.selection.method})"
        )
    return None


def _why_no_responses(database: Database) -> str | None:
    """Return why nothing was learnt from responses, where that is so."""
    from disco_cli.workflows.options import Recipe  # brings all selection methods with it

    if database.manifest.parameters["recipe"] == Recipe.DISCO.value:
        return (
            "the database was built with the recipe disco, which learns only what was published; "
            "run `disco build-db --recipe auto`"
        )
    if "responses" not in database.references:
        return "the files that the database was built from have neither labels nor responses"
    return None


def _own_units(database: Database) -> str:
    return (
        f"the truth of the database ({database.manifest.metric}) is in units of its own, not the "
        f"mean of what the models got on the samples (--average {database.manifest.average})"
    )
