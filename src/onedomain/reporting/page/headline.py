"""What a person should know first, as sentences made from the numbers: who holds up, and who knows when not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from onedomain.reporting.comparison import Comparison
from onedomain.reporting.contenders import Contender, is_baseline
from onedomain.reporting.estimates import Estimate, too_close
from onedomain.reporting.page.answers import Warnings, warnings
from onedomain.reporting.shown_metric import ACCURACY

TELLS_APART = 0.2  # so many more of the wrong answers must be flagged than of the right ones to warn of mistakes


class Headline(NamedTuple):
    """`holds_up`: which method is best on unseen domains. `knows`: whether it can tell where it is not."""

    holds_up: str
    knows: str


def headline(comparison: Comparison) -> Headline:
    if not comparison.rivals or (comparison.adapted_to and not comparison.compared):
        return Headline(_adapted(comparison), "")
    best = comparison.rivals[0]
    average = comparison.average(best)
    if average is None:
        domains = "were scored on no unseen domain" if not comparison.unseen else "share no unseen domain"
        return Headline(f"Nothing to compare: the runs {domains}.", "")
    return Headline(_holds_up(comparison, best, average), _knows(comparison, best))


def _holds_up(comparison: Comparison, best: Contender, average: Estimate) -> str:
    ranked = [(each, estimate) for each in comparison.rivals if (estimate := comparison.average(each)) is not None]
    domains = comparison.compared
    where = domains[0] if len(domains) == 1 else f"{len(domains)} unseen domains"
    over = "" if len(domains) == 1 else " on average"
    shown = comparison.metric.share
    if len(ranked) == 1:
        return f"{best.title} has {shown(average.mean)}{over} on {where}{_at_home(comparison, best)}."
    plain = next((pair for pair in ranked if is_baseline(pair[0])), None)
    plain_is_best = plain is not None and plain[0] is best
    reference, beside = ranked[1] if plain is None or plain_is_best else plain
    if too_close(average, beside):
        verdict = "Nothing beats plain training" if plain_is_best else "No clear winner"
        both = f"{best.title} {shown(average.mean)}, {reference.title} {shown(beside.mean)}"
        return f"{verdict} on {where}: {both}{over}, a difference within chance."
    near = [each.title for each, estimate in ranked[1:] if each is not reference and too_close(average, estimate)]
    who = f"{best.title}, plain training," if plain_is_best else best.title
    lead = f"{shown(average.mean)}{over}, {100 * (average.mean - beside.mean):.1f} points above {reference.title}"
    others = " and ".join(filter(None, (", ".join(near[:-1]), *near[-1:])))
    remark = f"; {others} {'is' if len(near) == 1 else 'are'} too close to tell apart" if near else ""
    return f"{who} holds up best on {where}: {lead}{remark}."


def _adapted(comparison: Comparison) -> str:
    """Where none of the runs met a domain unprepared: the best of those that were adapted to it."""
    found = [
        (estimate.mean, contender.title, domain)
        for contender in comparison.contenders
        for domain in sorted(contender.adapted_to)
        if (estimate := comparison.estimate(contender, domain)) is not None
    ]
    mean, title, domain = max(found)
    return f"{title}: {comparison.metric.share(mean)} on {domain} after adapting to it."


def _at_home(comparison: Comparison, contender: Contender) -> str:
    for column in comparison.sources:
        estimate = comparison.estimate(contender, column.name)
        if estimate is not None:
            return f", against {comparison.metric.share(estimate.mean)} on {column.name}, its source"
    return ""


def _knows(comparison: Comparison, best: Contender) -> str:
    """Whether the best method flags, of every unseen domain, at least as many images as it gets wrong."""
    if comparison.metric is not ACCURACY:
        return _knows_pixels(comparison, best)
    found = []
    for domain in comparison.compared:
        estimate, flagged = comparison.estimate(best, domain), best.mean(domain, "flagged")
        if estimate is None or flagged is None:
            return f"Whether {best.title} knows when it fails was not measured: a run of it has no calibration."
        found.append((1 - estimate.mean, flagged, domain))
    at_home = [
        f" ({flagged:.0%} of new {column.name} images)"
        for column in comparison.sources
        if (flagged := best.mean(column.name, "flagged")) is not None
    ]
    warned = warnings(best, comparison.benchmark, comparison.compared)
    of_wrong, of_right = (None, None) if warned is None else (warned.of_wrong, warned.of_right)
    alike = of_wrong is not None and of_right is not None and of_wrong - of_right < TELLS_APART
    unwarned = [(error - flagged, error, flagged, domain) for error, flagged, domain in found if flagged < error]
    if unwarned:
        _, error, flagged, domain = max(unwarned)
        verdict = "fails without a warning" if len(unwarned) == len(found) else "sometimes fails without a warning"
        fact = f"of {domain} it gets {error:.0%} wrong and flags {flagged:.0%} as out of domain"
    else:
        low, high = (f"{extreme(flagged for _, flagged, _ in found):.0%}" for extreme in (min, max))
        span = low if low == high else f"{low.removesuffix('%')} to {high}"
        verdict = "warns of unseen domains, hardly of its own mistakes" if alike else "warns where it fails"
        fact = f"it flags {span} of {found[0][2] if len(found) == 1 else 'each unseen domain'} as out of domain"
    return f"{best.title} {verdict}: {fact}{''.join(at_home[:1])}.{_of_answers(warned)}"


def _knows_pixels(comparison: Comparison, best: Contender) -> str:
    """Whether its uncertainty is higher on wrong pixels, and on unseen domains than at home."""
    found = [best.mean(domain, "error_auroc") for domain in comparison.compared]
    known = [value for value in found if value is not None]
    if not known or len(known) < len(found):
        return f"Whether {best.title} is more uncertain where it is wrong was not measured."
    lowest, domain = min(zip(known, comparison.compared, strict=True))
    verdict = "is more uncertain where it is wrong" if lowest > 0.5 else "is sometimes most certain where it is wrong"
    fact = f"of a wrong and a right pixel of {domain} the wrong one is more uncertain in {lowest:.0%} of cases"
    return f"{best.title} {verdict}: {fact}.{_away_and_at_home(comparison, best)}"


def _away_and_at_home(comparison: Comparison, best: Contender) -> str:
    away = comparison.mean(best, "entropy")
    home = next((value for each in comparison.sources if (value := best.mean(each.name, "entropy")) is not None), None)
    if away is None or home is None:
        return ""
    domains = comparison.compared
    where = domains[0] if len(domains) == 1 else "unseen domains"
    word = "higher" if away > home else "not higher"
    source = comparison.sources[0].name
    return f" Its uncertainty is {word} on {where} than on {source}: {away:.2f} and {home:.2f} nats per pixel."


def _of_answers(warned: Warnings | None) -> str:
    """The same image by image, where the answers were kept."""
    if warned is None or warned.of_wrong is None or warned.of_right is None:
        return ""
    return f" It flags {warned.of_wrong:.0%} of its wrong answers and {warned.of_right:.0%} of its right ones."


def seeds_of(contenders: Sequence[Contender]) -> str:
    """How many seeds the numbers rest on."""
    counts = sorted({len(each.runs) for each in contenders})
    unit = " or ".join(sorted({each.repeated for each in contenders}, reverse=True))
    if counts == [1]:
        return f"one {unit}" if len(contenders) == 1 else f"one {unit} each: another {unit} may change the order"
    units = unit.replace("seed", "seeds").replace("draw", "draws")
    if len(counts) == 1:
        return f"{counts[0]} {units}" if len(contenders) == 1 else f"{counts[0]} {units} each"
    return f"{counts[0]} to {counts[-1]} {units}"
