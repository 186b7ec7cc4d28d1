"""What the shell offers when a word is completed (`_BEMF_COMPLETE=bash_source bemf` gives bash the means)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from click import Context, Parameter


def models(context: Context, option: Parameter, begun: str) -> list[str]:  # noqa: ARG001
    """The models there are."""
    from bemf.models import MODELS

    return [name for name in MODELS if name.startswith(begun)]


def hyperparameters(context: Context, option: Parameter, begun: str) -> list[str]:  # noqa: ARG001
    """The parameters of the model that is asked for."""
    from bemf.cli.fit import settable
    from bemf.models import MODELS

    kind = context.params.get("kind")
    return [f"{name}=" for name in settable(kind if kind in MODELS else "BeMF") if name.startswith(begun)]


def data_sets(context: Context, option: Parameter, begun: str) -> list[str]:  # noqa: ARG001
    """The data sets that can be had by name."""
    from bemf.datasets.catalogue import DATASETS

    return [name for name in DATASETS if name.startswith(begun)]


def sources(context: Context, option: Parameter, begun: str) -> list[CompletionItem]:
    """Data sets, once something is typed that one begins with; else files."""
    names = data_sets(context, option, begun) if begun else []
    return [CompletionItem(name) for name in names] or [CompletionItem(begun, type="file")]
