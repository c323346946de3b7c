"""Completion: what a shell offers, driven as click's scripts drive it, and in a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked_python import ForkedPython

from cli.processes import PATIENCE, environment
from rota.model.jobs.job import State
from rota.store.contract import Node

ROTA = Path(sys.executable).parent / "rota"
BASH = shutil.which("bash") or ""
STATES = [state.value for state in State]


def offered(line: str, **env: str) -> list[str]:
    """What bash would be given for this line."""
    word = line.rpartition(" ")[2] if "'" not in line else f"'{line.partition(chr(39))[2]}"
    told = environment(_ROTA_COMPLETE="bash_complete", COMP_LINE=line, COMP_WORD=word, **env)
    ran = ForkedPython([str(ROTA)], cwd=Path.cwd(), env=told)
    with ran.stdout as output:
        said = output.read()  # what a program says on stderr is in it, and would be no suggestion
    assert ran.wait(PATIENCE) == 0, said
    return said.strip().splitlines()


def plain(line: str, **env: str) -> list[str]:
    found = offered(line, **env)
    assert all(item.startswith("plain,") for item in found), found
    return [item.removeprefix("plain,") for item in found]


@pytest.mark.usefixtures("folder")
def test_commands_and_options_are_completed():
    assert plain("rota sche") == ["scheduler", "schedules"]
    assert plain("rota jobs re") == ["retry"]
    assert plain("rota top --o") == ["--once", "--output"]
    assert plain("rota stats -o ") == ["table", "json", "jsonl", "csv"]
    assert plain("rota stats -o js") == ["json", "jsonl"]
    assert plain("rota stats --output=c") == ["csv"]
    assert plain("rota completion ") == ["bash", "zsh", "fish"]


@pytest.mark.usefixtures("folder")
def test_a_filter_is_completed_term_by_term():
    assert plain("rota jobs list --where sta") == ["state:"]
    assert plain("rota jobs list --where state:") == STATES  # bash has broken the word at the colon
    assert plain("rota jobs list --where state:fai") == ["failed"]
    assert plain("rota jobs list --where=state:fai") == ["failed"]
    assert plain("rota jobs list --where 'state:fai") == ["state:failed"]
    assert plain("rota jobs list --where 'state:failed,can") == ["state:failed,cancelled"]
    assert plain("rota jobs list --where 'state:failed sin") == ["state:failed since:"]
    assert "state:failed state:" not in plain("rota jobs list --where 'state:failed ")
    assert plain("rota jobs list --where 'since:1") == ["since:15m", "since:1h"]
    assert plain("rota jobs list --where 'colour:") == []


def test_what_a_store_holds_is_completed(rota, store):
    rota.sync()
    job_id = rota.enqueue("send", "ann")
    store.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker",), tasks=("jobs.send", "other.task")))
    assert plain("rota schedules pause ") == ["report", "tick"]
    assert plain("rota schedules show re") == ["report"]
    rota("tenants", "put", "acme", "--tz", "UTC")
    rota("tenants", "put", "beta", "--tz", "UTC")
    assert plain("rota tenants show ") == ["acme", "beta"]
    assert plain("rota schedules list --tenant b") == ["beta"]
    assert plain("rota schedules changes t") == ["tick"]
    assert plain("rota queues pause ") == ["mail"]
    assert plain("rota queues pause mail ma") == ["mail"]
    assert plain("rota run jobs.py -q default,m") == ["default,mail"]
    assert plain("rota jobs show ") == [job_id]
    assert plain("rota jobs retry ") == [job_id]
    assert plain("rota jobs list --where 'task:") == [
        f"task:{name}" for name in ("jobs.report", "jobs.send", "jobs.tick", "other.task")
    ]
    assert plain("rota jobs list --where 'schedule:t") == ["schedule:tick"]
    assert plain("rota jobs list --where 'queue:") == ["queue:mail"]
    assert plain("rota queues pause --store sqlite:///none.db ") == []
    assert not (rota.folder / "none.db").exists()


def test_tasks_are_those_of_the_app_that_is_named(rota):
    assert plain("rota enqueue --app jobs.py jobs.g") == ["jobs.greet"]
    assert plain("rota enqueue jobs.s", ROTA_APP="jobs.py") == ["jobs.send"]
    assert not (rota.folder / ".rota").exists()


def test_an_app_that_prints_breaks_or_hangs_gives_no_suggestions_and_no_noise(rota):
    (rota.folder / "loud.py").write_text(
        "import os, sys\nprint('hello')\nos.write(1, b'deep')\nos.write(2, b'deep')\nprint('x', file=sys.stderr)\n"
        "from rota import App\napp = App()\n@app.task\ndef work(): ...\n"
    )
    assert plain("rota enqueue --app loud.py ") == ["loud.work"]
    for number, text in enumerate(["1 / 0", "raise SystemExit(3)", "import time\ntime.sleep(60)", "def ("]):
        (rota.folder / f"bad{number}.py").write_text(text)
        assert plain(f"rota enqueue --app bad{number}.py ") == []
    assert plain("rota enqueue --app nowhere.py ") == []


def test_completion_makes_no_store_and_reads_none_that_is_broken_or_old(rota):
    for line in ("rota schedules pause ", "rota jobs show ", "rota jobs list --where 'task:", "rota queues pause "):
        assert plain(line) == []
    assert not (rota.folder / ".rota").exists()
    (rota.folder / "text.db").write_text("no database" * 100)
    assert plain("rota schedules pause ", ROTA_STORE="sqlite:///text.db") == []
    (rota.folder / "empty.db").touch()
    assert plain("rota schedules pause ", ROTA_STORE="sqlite:///empty.db") == []
    assert (rota.folder / "empty.db").stat().st_size == 0
    assert plain("rota schedules pause ", ROTA_STORE="redis://127.0.0.1:1") == []
    assert plain("rota schedules pause ", ROTA_STORE="nonsense://") == []


@pytest.mark.usefixtures("folder")
def test_targets_are_files_which_the_shell_completes_itself():
    assert offered("rota run jo") == ["file,jo"]
    assert offered("rota stats --app ") == ["file,"]


@pytest.mark.parametrize(
    ("shell", "first", "place"),
    [
        ("bash", "# Install: ", "~/.local/share/bash-completion/completions/rota"),
        ("zsh", "#compdef rota", "_rota"),
        ("fish", "# Install: ", "~/.config/fish/completions/rota.fish"),
    ],
)
def test_the_script_says_how_it_is_installed(rota, shell, first, place):
    lines = rota("completion", shell).stdout.splitlines()
    assert lines[0].startswith(first)
    assert any(line.startswith("# Install: ") and place in line for line in lines[:2])
    assert f"_ROTA_COMPLETE={shell}_complete" in "\n".join(lines)


def test_an_unknown_shell_is_refused(rota):
    assert "'tcsh' is not one of" in rota("completion", "tcsh", code=2).stderr


@pytest.mark.parametrize(("shell", "reply"), [("zsh", "plain\nreport\n_"), ("fish", "plain,report")])
def test_zsh_and_fish_are_answered_too(rota, shell, reply):
    rota.sync()
    cword = "3" if shell == "zsh" else "rep"
    told = environment(_ROTA_COMPLETE=f"{shell}_complete", COMP_WORDS="rota schedules show rep", COMP_CWORD=cword)
    ran = subprocess.run([ROTA], env=told, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert (ran.stdout.strip(), ran.stderr) == (reply, "")


# In a real bash.

ASK = """
set -u
eval "$(rota completion bash)"
ask() {{
    COMP_LINE="$1" COMP_POINT=${{#1}}
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    compopt() {{ printf '(%s) ' "$*"; }}
    _rota_completion rota "${{COMP_WORDS[COMP_CWORD]}}" ""
    echo "${{COMPREPLY[*]-}}"
}}
complete -p rota
{asked}
"""


def in_bash(*asked: str) -> list[str]:
    path = f"{ROTA.parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        [BASH, "--norc", "-c", ASK.format(asked="\n".join(asked))],
        env=environment(PATH=path), capture_output=True, text=True, timeout=3 * PATIENCE, check=True,
    )  # fmt: skip
    assert ran.stderr == ""
    return ran.stdout.splitlines()


@pytest.mark.skipif(not BASH, reason="there is no bash here")
def test_a_real_bash_runs_the_script(rota):
    rota.sync()
    lines = in_bash(
        "ask 'rota stat' rota stat",
        "ask 'rota schedules show re' rota schedules show re",
        "ask 'rota jobs list --where sta' rota jobs list --where sta",
        "ask 'rota jobs list --where state:fa' rota jobs list --where state : fa",
        """ask "rota jobs list --where 'state:failed sta" rota jobs list --where "'state:failed sch" """,
        "ask 'rota run jo' rota run jo",
    )
    assert lines == [
        "complete -o nosort -F _rota_completion rota",
        "stats",
        "report",
        "(-o nospace) state:",
        "failed",
        "",
        "(-o default) ",
    ]
