"""The generated part of docs/policies.md: `python -m vcjob.lifecycle.docs` brings it up to date.

The table between `<!-- phases -->` and `<!-- end -->` is made of `TRANSITIONS`, so that the page cannot say what the
code does not do.
"""

import re
import sys
from pathlib import Path
from typing import Final

from vcjob.api.job import Action, Phase

from .transitions import ENDS_IN, Keep, Rule, Scope, find_rule

__all__ = ("PAGE", "main", "phase_table", "refresh")

PAGE: Final = Path("docs/policies.md")
_PART: Final = re.compile(r"(<!-- phases -->\n).*?(<!-- end -->)", re.DOTALL)
_COLUMNS: Final = (
    ("RestartJob", Action.RESTART_JOB),
    ("RestartTask, RestartPod, RestartPartition", Action.RESTART_TASK),
    ("AbortJob", Action.ABORT_JOB),
    ("TerminateJob", Action.TERMINATE_JOB),
    ("CompleteJob", Action.COMPLETE_JOB),
    ("ResumeJob", Action.RESUME_JOB),
)


def phase_table() -> str:
    """Return the phase table as Markdown."""
    rows = [f"| Phase | {' | '.join(title for title, _ in _COLUMNS)} |", f"|---|{'---|' * len(_COLUMNS)}"]
    for phase in Phase:
        cells = (_cell(find_rule(phase, action)) for _, action in _COLUMNS)
        ends = f" (→ {ENDS_IN[phase]})" if phase in ENDS_IN else ""
        rows.append(f"| **{phase}**{ends} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def refresh(page: str) -> str:
    """Return the page with its table made anew."""
    return _PART.sub(lambda match: f"{match[1]}{phase_table()}{match[2]}", page)


def main() -> int:
    """Bring the page up to date."""
    PAGE.write_text(refresh(PAGE.read_text()))
    return 0


def _cell(rule: Rule | None) -> str:
    if rule is None:
        return "–"
    whom = "all Pods" if rule.keep is Keep.NOTHING else "Pods that live"
    if rule.scope is Scope.TARGET:
        whom = "those Pods"
    if rule.to is not Phase.RESTARTING:
        return f"→ {rule.to}; kills {whom}"
    return f"→ {rule.to}; kills {whom}; {f'{rule.retries} retry' if rule.retries else 'no retry'}"


if __name__ == "__main__":
    sys.exit(main())
