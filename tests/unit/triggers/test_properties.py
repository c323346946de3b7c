"""What is true of every trigger, whatever its rule, its zone and the instant one asks from."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from amounts import amount
from reference.zones import LAST, instant, load, second_of, transitions
from rota import BadTrigger, calendar, cron, every, once, trigger_from_text

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Antarctica/Casey",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Santiago",
    "America/Havana",
    "America/Nuuk",
    "America/St_Johns",
    "Atlantic/Azores",
    "Pacific/Chatham",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "Asia/Pyongyang",
)
DAY = 86_400
MOST_WALKED = 400

steady = settings(deadline=None, derandomize=True, max_examples=amount(60, 200))

# Rules


def one_field(low: int, high: int) -> st.SearchStrategy[str]:
    """A field of numbers: a star, a value, a range (wrapped too), a step, or a short list of them."""
    value = st.integers(low, high)
    step = st.integers(1, high - low)
    item = st.one_of(
        st.just("*"),
        value.map(str),
        st.tuples(value, value).map(lambda ends: f"{ends[0]}-{ends[1]}"),
        step.map(lambda n: f"*/{n}"),
        st.tuples(value, step).map(lambda pair: f"{pair[0]}/{pair[1]}"),
    )
    return st.lists(item, min_size=1, max_size=3).map(",".join)


DAYS_OF_MONTH = st.one_of(
    st.just("*"),
    one_field(1, 28),
    st.sampled_from(["L", "L-3", "LW", "1W", "15W", "31W", "1,15W,L", "28-3", "?"]),
)
DAYS_OF_WEEK = st.one_of(
    st.just("*"),
    one_field(0, 6),
    st.sampled_from(["MON-FRI", "FRI-MON", "SUN", "7", "MON#1", "2#5", "FRIL", "0L", "MON#1,FRIL", "SAT-SUN"]),
)


@st.composite
def five_fields(draw) -> str:
    """A five-field expression that can fire."""
    month = draw(st.one_of(st.just("*"), one_field(1, 12)))
    days = draw(DAYS_OF_MONTH), draw(DAYS_OF_WEEK)
    text = f"{draw(one_field(0, 59))} {draw(one_field(0, 23))} {days[0]} {month} {days[1]}"
    assume(is_possible(text))
    return text


def is_possible(expression: str) -> bool:
    try:
        cron(expression)
    except BadTrigger as refusal:
        reason = str(refusal)
    else:
        return True
    assert "never fire" in reason, expression
    return False


@st.composite
def seconds(draw, zone: str) -> int:
    """An instant of 1970 through 2100, often close to a change of the zone's offset."""
    changes = transitions(zone)
    if changes and draw(st.booleans()):
        change = draw(st.sampled_from(changes))[0]
        return min(LAST, max(0, change + draw(st.integers(-DAY, DAY))))
    return draw(st.integers(0, LAST))


@st.composite
def crons(draw):
    """A cron trigger in a zone, and an instant."""
    zone = draw(st.sampled_from(ZONES))
    second_field = draw(st.one_of(st.just(""), one_field(0, 59).map(lambda field: f"{field} ")))
    expression = draw(five_fields())
    if second_field and "?" in expression:
        expression = expression.replace("?", "*")
    assume(is_possible(second_field + expression))
    return cron(second_field + expression, tz=zone), draw(seconds(zone))


@st.composite
def calendars(draw):
    """A calendar interval in a zone, and an instant."""
    zone = draw(st.sampled_from(ZONES))
    asked = draw(seconds(zone))
    unit = draw(st.sampled_from(["days", "weeks", "months", "quarters", "years"]))
    options: dict[str, object] = {unit: draw(st.integers(1, 6))}
    if unit == "weeks":
        options["on"] = draw(st.sampled_from([None, "mon", "sun"]))
    elif unit != "days" and draw(st.booleans()):
        options |= {"on": draw(st.sampled_from(["tue", "sat"])), "nth": draw(st.sampled_from([1, 2, 4, "last"]))}
    elif unit != "days":
        options["month_end"] = draw(st.sampled_from(["clamp", "last"]))
    wall = draw(st.times().map(lambda time: time.replace(microsecond=0, fold=0)))
    start = max(date(1970, 1, 1), instant(asked).date() - timedelta(days=draw(st.integers(-100, 3000))))
    return calendar(**options, at=wall, start=start, tz=zone), asked


@st.composite
def elapsed(draw):
    """An elapsed interval, and an instant."""
    zone = draw(st.sampled_from(ZONES))
    asked = draw(seconds(zone))
    start = instant(asked - draw(st.integers(-DAY, 10**8)))
    return every(timedelta(seconds=draw(st.integers(1, 10**6))), start=start, tz=zone), asked


ANY_TRIGGER = st.one_of(crons(), calendars(), elapsed())


# Two runs in one zone compare by their wall times, so instants are compared as seconds.


def next_of(trigger, second: int) -> int:
    run = trigger.next_after(instant(second))
    assume(run is not None)
    return second_of(run)


def previous_of(trigger, second: int) -> int | None:
    run = trigger.previous_before(instant(second))
    return None if run is None else second_of(run)


def next_few(trigger, second: int, count: int) -> list[int]:
    return [second_of(run) for run in trigger.next_runs(count, after=instant(second))]


# All triggers


@steady
@given(ANY_TRIGGER)
def test_the_next_run_is_later_than_the_instant(case):
    trigger, asked = case
    assert next_of(trigger, asked) > asked


@steady
@given(ANY_TRIGGER, st.floats(0, 1, exclude_max=True))
def test_the_answer_is_the_same_from_every_point_before_it(case, part):
    trigger, asked = case
    run = next_of(trigger, asked)
    assert next_of(trigger, asked + int((run - asked) * part)) == run
    assert next_of(trigger, run - 1) == run
    assert second_of(trigger.next_after(instant(run) - timedelta(microseconds=1))) == run


@steady
@given(ANY_TRIGGER)
def test_runs_strictly_increase(case):
    trigger, asked = case
    runs = next_few(trigger, asked, 30)
    assert all(one < other for one, other in pairwise(runs))
    assert runs[:1] in ([], [next_of(trigger, asked)])


@steady
@given(ANY_TRIGGER)
def test_looking_back_from_the_next_run_does_not_pass_the_instant(case):
    trigger, asked = case
    run = next_of(trigger, asked)
    previous = previous_of(trigger, run)
    assert previous is None or (previous <= asked and next_of(trigger, previous) == run)


@steady
@given(ANY_TRIGGER)
def test_looking_ahead_from_the_previous_run_reaches_the_instant(case):
    trigger, asked = case
    previous = previous_of(trigger, asked)
    assume(previous is not None)
    assert previous < asked
    assert next_of(trigger, previous) >= asked


@steady
@given(ANY_TRIGGER, st.integers(0, 40 * DAY))
def test_a_count_is_the_number_of_runs_walked(case, length):
    trigger, asked = case
    walked = next_few(trigger, asked, MOST_WALKED)
    end = min([asked + length, *walked[-1:]])
    assert trigger.count_between(instant(asked), instant(end)) == sum(run <= end for run in walked)


@steady
@given(ANY_TRIGGER, st.integers(0, 10 * DAY), st.integers(0, 10 * DAY))
def test_counts_of_two_stretches_add_up(case, first, second):
    trigger, asked = case
    start, middle, end = instant(asked), instant(asked + first), instant(asked + first + second)
    whole = trigger.count_between(start, end)
    assert whole == trigger.count_between(start, middle) + trigger.count_between(middle, end)


@steady
@given(ANY_TRIGGER)
def test_nothing_lies_in_an_empty_or_reversed_stretch(case):
    trigger, asked = case
    assert trigger.count_between(instant(asked), instant(asked)) == 0
    assert trigger.count_between(instant(asked), instant(asked - DAY)) == 0


@steady
@given(ANY_TRIGGER)
def test_seconds_and_datetimes_give_the_same_answers(case):
    trigger, asked = case
    assert trigger.next_second(asked) == next_of(trigger, asked)
    assert trigger.second_before(asked) == previous_of(trigger, asked)


@steady
@given(ANY_TRIGGER)
def test_local_time_and_utc_ask_the_same_question(case):
    trigger, asked = case
    local = instant(asked).astimezone(load(trigger.tz))
    assert second_of(trigger.next_after(local)) == next_of(trigger, asked)


@steady
@given(ANY_TRIGGER)
def test_runs_are_whole_seconds_in_the_zone_of_the_trigger(case):
    trigger, asked = case
    run = trigger.next_after(instant(next_of(trigger, asked) - 1))
    assert run.microsecond == 0
    assert str(run.tzinfo) == trigger.tz
    assert run.utcoffset() == run.astimezone(UTC).astimezone(load(trigger.tz)).utcoffset()


@steady
@given(ANY_TRIGGER)
def test_the_text_form_reads_back_as_the_same_trigger(case):
    trigger, asked = case
    again = trigger_from_text(str(trigger))
    assert again == trigger
    assert hash(again) == hash(trigger)
    assert str(again) == str(trigger)
    assert next_few(again, asked, 3) == next_few(trigger, asked, 3)


@steady
@given(ANY_TRIGGER, ANY_TRIGGER)
def test_triggers_are_equal_when_their_texts_are(one, other):
    assert (one[0] == other[0]) == (str(one[0]) == str(other[0]))
    assert len({one[0], other[0]}) == (1 if one[0] == other[0] else 2)


@steady
@given(ANY_TRIGGER)
def test_a_bound_trigger_stays_as_it_is(case):
    trigger, asked = case
    assert trigger.bound(tz="Asia/Tokyo", start=instant(asked)) == trigger


@steady
@given(ANY_TRIGGER)
def test_every_trigger_can_be_explained_in_one_line(case):
    text = case[0].explain()
    assert text
    assert "\n" not in text


@steady
@given(crons() | calendars())
def test_a_run_stands_for_its_own_wall_time_unless_a_gap_moved_it(case):
    trigger, asked = case
    run = instant(next_of(trigger, asked)).astimezone(load(trigger.tz))
    stands_for, shows = trigger.wall_time_of(run), run.replace(tzinfo=None, fold=0)
    change = next((c for c in transitions(trigger.tz) if c[0] == second_of(run)), None)
    if change is None or change[2] < change[1]:
        assert stands_for == shows
    else:
        assert shows - timedelta(seconds=change[2] - change[1]) <= stands_for <= shows


# Cron


@steady
@given(five_fields(), st.data())
def test_a_seconds_field_of_zero_changes_nothing(expression, data):
    assume("?" not in expression)
    zone = data.draw(st.sampled_from(ZONES))
    asked = data.draw(seconds(zone))
    five, six = cron(expression, tz=zone), cron(f"0 {expression}", tz=zone)
    assert next_few(five, asked, 10) == next_few(six, asked, 10)
    assert previous_of(five, asked) == previous_of(six, asked)


@steady
@given(st.integers(0, 59), st.integers(0, 59), st.integers(0, 23), st.data())
def test_a_list_runs_when_any_of_its_items_does(one, other, hour, data):
    zone = data.draw(st.sampled_from(ZONES))
    asked = data.draw(seconds(zone))
    both = cron(f"{one},{other} {hour} * * *", tz=zone)
    each = [cron(f"{minute} {hour} * * *", tz=zone) for minute in (one, other)]
    assert next_of(both, asked) == min(next_of(trigger, asked) for trigger in each)


@steady
@given(five_fields(), st.data())
def test_case_and_spaces_change_nothing(expression, data):
    asked = data.draw(seconds("UTC"))
    plain = cron(expression)
    assert cron(f"  {expression.lower().replace(' ', '   ')} ") == plain
    assert next_of(cron(expression.lower()), asked) == next_of(plain, asked)


@steady
@given(five_fields(), st.data())
def test_the_zone_in_front_is_the_zone_given(expression, data):
    zone = data.draw(st.sampled_from(ZONES))
    assert cron(f"CRON_TZ={zone} {expression}") == cron(expression, tz=zone) == cron(expression).bound(tz=zone)


# Intervals


def months_later(anchor: date, months: int) -> date:
    year, month = divmod(anchor.year * 12 + anchor.month - 1 + months, 12)
    return date(year, month + 1, min(anchor.day, monthrange(year, month + 1)[1]))


@steady
@given(st.dates(date(1970, 1, 1), date(2060, 12, 31)), st.integers(1, 30), st.integers(0, 300))
def test_monthly_runs_are_the_anchor_plus_k_months(anchor, step, k):
    trigger = calendar(months=step, at="00:05", start=anchor, tz="UTC")
    before, there = (
        datetime(day.year, day.month, day.day, 0, 5, tzinfo=UTC)
        for day in (months_later(anchor, step * k), months_later(anchor, step * (k + 1)))
    )
    assert trigger.next_after(before) == there
    assert trigger.previous_before(there) == before
    assert trigger.count_between(before - timedelta(seconds=1), there) == 2


@steady
@given(st.dates(date(1970, 1, 1), date(2060, 12, 31)), st.integers(1, 500), st.integers(0, 300))
def test_daily_runs_are_the_anchor_plus_k_days(anchor, step, k):
    trigger = calendar(days=step, at="12:00", start=anchor, tz="UTC")
    first = datetime(anchor.year, anchor.month, anchor.day, 12, tzinfo=UTC)
    assert trigger.next_after(first + timedelta(days=step * k)) == first + timedelta(days=step * (k + 1))


@steady
@given(st.integers(0, LAST), st.integers(1, 10**7), st.integers(0, 10**4), st.sampled_from(ZONES))
def test_elapsed_runs_are_the_start_plus_k_times_the_duration(start, step, k, zone):
    trigger = every(timedelta(seconds=step), start=instant(start), tz=zone)
    assert trigger.next_second(start + k * step) == start + (k + 1) * step
    assert trigger.next_second(start + k * step - 1) == start + k * step
    assert trigger.count_between(instant(start - 1), instant(start + k * step)) == k + 1


@steady
@given(st.integers(0, LAST), st.sampled_from(ZONES))
def test_once_reads_back_and_runs_at_its_instant(second, zone):
    trigger = once(instant(second), tz=zone)
    assert trigger.next_second(second - 1) == second
    assert trigger.next_second(second) is None
    assert trigger_from_text(str(trigger)) == trigger
