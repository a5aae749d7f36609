"""Tab completion, installed by ``auditor --install-completion``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import rich_click as click

from auditor.errors import AuditorError
from auditor.process.console import tell

PROGRAM, VARIABLE = "auditor", "_AUDITOR_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
THIS = "this"
"""Name for the user's own shell."""


def install(context: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    """Write the completion script to the shell's folder and exit."""
    if shell is None or context.resilient_parsing:
        return
    from click.shell_completion import get_completion_class

    from auditor.results.files import write_atomically, writing

    name = Path(os.environ.get("SHELL", "")).name if shell == THIS else shell
    made = get_completion_class(name) if name in SHELLS else None
    if made is None:
        raise AuditorError(
            f"completion is there for {', '.join(SHELLS)}: say which, as --install-completion bash"
        )
    path, more = _place(name)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, made(context.command, {}, PROGRAM, VARIABLE).source().encode())
    tell(f"written: {path}. {more}")
    context.exit()


def _place(shell: str) -> tuple[Path, str]:
    home = Path.home()
    if shell == "bash":
        folder = _under("XDG_DATA_HOME", home / ".local/share")
        return (
            folder / f"bash-completion/completions/{PROGRAM}",
            "New shells with bash-completion use it.",
        )
    if shell == "fish":
        return _under(
            "XDG_CONFIG_HOME", home / ".config"
        ) / f"fish/completions/{PROGRAM}.fish", "New shells use it."
    return (
        home / f".zfunc/_{PROGRAM}",
        "Have this line in ~/.zshrc: fpath+=~/.zfunc; autoload -Uz compinit && compinit",
    )


def _under(variable: str, otherwise: Path) -> Path:
    return Path(os.environ.get(variable) or otherwise)


def scenarios(context: click.Context, parameter: click.Parameter, begun: str) -> list[Any]:
    """Complete a scenario's name from shipped scenarios and files."""
    from click.shell_completion import CompletionItem

    from auditor.process.shipped import shipped_scenarios

    return [
        *(CompletionItem(path.stem) for path in shipped_scenarios() if path.stem.startswith(begun)),
        CompletionItem(begun, type="file"),
    ]


option = click.option(
    "--install-completion",
    type=click.Choice((*SHELLS, THIS)),
    is_flag=False,
    flag_value=THIS,
    is_eager=True,
    expose_value=False,
    callback=install,
    metavar="[SHELL]",
    help="Have Tab complete commands in bash, zsh or fish; your own shell unless one is named.",
)
