"""Errors of `lockstep data prepare`: one line each."""
import importlib
import pathlib
import sys


class Problem(Exception):
    """Input that cannot be used: what was wrong, and what was expected."""


def needs(module, package):
    """Imports what an input or a tokenizer needs, and nothing else does."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        requirements = pathlib.Path(__file__).resolve().parent / "requirements.txt"
        raise Problem(
            f"{sys.executable} has no {package} ({error}). Install it: {sys.executable} -m pip install --no-deps "
            f"-r {requirements}"
        ) from error
