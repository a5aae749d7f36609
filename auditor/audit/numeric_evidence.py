"""Evidence of a numeric release: tests of its law, gains by pooling."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from auditor.audit.attempts.opened import Opened
from auditor.audit.base.request import Attempt
from auditor.audit.base.session import INSIDER
from auditor.audit.insider.gain import MOST_VALUES, insider_gains, noise_gains, unresolved
from auditor.audit.law_tests.numeric import law_rows, law_tests, looked_at
from auditor.audit.numeric.error_tally import TREE_ROWS
from auditor.base.types import Coalition
from auditor.numerics.blocks import Moments
from auditor.results.records import InsiderGain, LawTest, Pooling, ReleaseEvidence
from auditor.schemes.base.noise_law import KroneckerNoise, makes_useless, one_suffices


def insider_attempt(opened: Opened) -> Attempt:
    """Tests of the law, and the insider's gains."""
    opened = opened.by_record
    tests = law_tests(opened.release, opened.law_within)
    return replace(Attempt.of([]), tests=tests, gains=gains_of(opened, tests))


def gains_of(opened: Opened, tests: Sequence[LawTest]) -> dict[Coalition, InsiderGain]:
    """Insider's gains by pooling, in the first replicate."""
    release = opened.release
    if (
        not opened.release.joint
        or release.key.replicate > 1
        or all(len(coalition) == 1 for coalition in opened.needed)
    ):
        return {}
    most = min(TREE_ROWS, MOST_VALUES // (release.copies * release.table.width))
    x, copies = looked_at(release, most if release.kept else law_rows(release))
    proved = None
    if opened.law is not None and release.scheme.makes_copies:
        proved = len(tests) * min((test.p for test in tests), default=0.0)
    return insider_gains(opened.needed, x, copies, opened.law, proved)


def add_evidence(opened: Opened, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
    """Fill in the evidence."""
    opened, table = opened.by_record, opened.release.table
    insider = made.get(INSIDER)
    tests = insider.tests if insider else law_tests(opened.release, opened.law_within)
    evidence.law.extend(tests)
    if opened.estimated:
        evidence.facts["fitted"] = opened.release.copies * table.width / table.rows
    if opened.pooling:
        for found in made.values():
            evidence.paired.update(found.paired)
        gains = insider.gains if insider else gains_of(opened, tests)
        evidence.pooling.update(pooling(opened, gains))


def pooling(opened: Opened, gains: Mapping[Coalition, InsiderGain]) -> dict[Coalition, Pooling]:
    """Evidence on pooling, by coalition of two copies or more."""
    release, law = opened.release, opened.law
    several = [coalition for coalition in opened.needed if len(coalition) > 1]
    if not several:
        return {}
    if not opened.release.joint:
        told = release.scheme.sufficient(release.blocks(), several)
        return {one: Pooling(says, by_classes=True) for one, says in told.items()}
    total = Moments.merge(opened.gathered.groups)
    noise = noise_gains(several, total, law) if isinstance(law, KroneckerNoise) else {}
    useless = None if law is None else makes_useless(law)
    lost = unresolved(several, total, release.table.width)
    return {
        one: Pooling(
            None if useless is None else one_suffices(useless, one),
            noise.get(one),
            one in lost,
            gains.get(one),
            release.scheme.makes_copies,
        )
        for one in several
    }
