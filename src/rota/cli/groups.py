"""Defines groups of commands. A group answers a mistyped command with the most similar one."""

from __future__ import annotations

import difflib

import click


class Group(click.Group):
    """A command that has commands; alone, it shows them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of their definition: those that read come first, those that remove last."""
        del ctx
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as err:
            if args[0].startswith("-"):
                raise
            close = difflib.get_close_matches(args[0], self.commands, n=1)
            instead = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(self.commands))}"
            raise click.UsageError(f"{ctx.command_path} has no command {args[0]!r}; {instead}", ctx) from err
