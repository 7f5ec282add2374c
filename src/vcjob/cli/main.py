"""The `vcjob` command."""

import click

from vcjob import __version__

from .cluster import cluster
from .operator import operator
from .render import render
from .webhook import webhook

__all__ = ("main",)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="vcjob")
def main() -> None:
    """Run and try the operator for batch.volcano.sh Jobs."""


main.add_command(cluster)
main.add_command(operator)
main.add_command(render)
main.add_command(webhook)
