"""What people read of a proof: the line of the check run, and the report."""

from __future__ import annotations

from regreen.proofs.prove import ProofResult

_WORDS = {
    "proven": "proven",
    "not_discriminating": "not discriminating",
    "inconclusive": "inconclusive",
    "nothing_to_prove": "nothing to prove",
    "refused": "refused",
}


def describe_mutants(result: ProofResult) -> str:
    """How many faults in the changed lines no test noticed; "" where none was tried."""
    total = len(result.mutants)
    lived = sum(mutant.killed_by is None for mutant in result.mutants)
    if not total:
        return ""
    if not lived:
        return f"all of {total} faults in the changed lines are noticed"
    return f"{'this' if lived == 1 else 'these'} {lived} of {total} changes would pass unnoticed"


def format_proof(result: ProofResult) -> str:
    """The report on the terminal."""
    lines = [f"{_WORDS[result.verdict]}: {result.reason}", ""]
    for test in result.tests:
        lines += [f"  {test.test}", f"    {_WORDS[test.verdict]}: {test.reason}"]
    lived = [mutant for mutant in result.mutants if mutant.killed_by is None]
    if told := describe_mutants(result):
        lines += ["", f"{told}:" if lived else told]
        lines += [f"  {mutant.path}:{mutant.line}: {mutant.change}" for mutant in lived]
    if result.claims:
        lines += ["", "claims:"]
    holds = {True: "holds", False: "does not hold", None: "not known"}
    lines += [f"  {claim.text}: {holds[claim.holds]} ({claim.reason})" for claim in result.claims]
    if result.census:
        lines += ["", "what the change takes from the tests:"]
    lines += [f"  {reason.check}: {reason.detail}" for reason in result.census]
    spent = ", ".join(f"{name} {value:.1f} s" for name, value in result.seconds.items())
    return "\n".join([*lines, "", spent])
