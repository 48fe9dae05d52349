"""Print a script that completes commands, options and files in a shell.

For bash: mlca completion bash > ~/.local/share/bash-completion/completions/mlca
"""

from __future__ import annotations

import argparse

from mlca.optional import needing

_FILES = ("FILE", "MODEL")
_FOLDERS = ("DIR",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))


def run(args: argparse.Namespace) -> int:
    """Print the script; return the exit code."""
    with needing("mlca completion", "cli"):
        import shtab
    from mlca.cli import build_parser

    parser = build_parser()
    _complete_paths(parser, shtab.FILE, shtab.DIRECTORY)
    print(shtab.complete(parser, args.shell))
    return 0


def _complete_paths(parser: argparse.ArgumentParser, files: object, folders: object) -> None:
    """Enable path completion for all arguments that are files or folders."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_paths(command, files, folders)
        elif action.metavar in _FILES:
            vars(action)["complete"] = files
        elif action.metavar in _FOLDERS:
            vars(action)["complete"] = folders
