"""The catalogue: every language says the same things, templates say nothing by themselves, and no value is markup."""

from __future__ import annotations

import ast
import re
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter
from zoneinfo import ZoneInfo

import pytest
from markupsafe import Markup, escape

import rota
import rota.model.why
import rota.triggers.caveats
import rota.web.pages
from rota import calendar, cron, every, once
from rota.model.alerts.findings import FINDINGS
from rota.model.reasons import REASONS
from rota.model.schedules.wording import LABELS
from rota.triggers.phrases import ENGLISH, Phrases
from rota.web.pages.rendering import environment
from rota.web.pages.said_words import key_of as said_key
from rota.web.pages.texts import DEFAULT, chosen_language, languages, texts_of
from rota.web.pages.why_words import fixed, key_of, warned
from rota.web.pages.words import Words, with_code
from unit.model.test_why_codes import codes_in_source

FOLDER = Path(rota.web.pages.__file__).parent
TEMPLATES = sorted(path.name for path in (FOLDER / "templates").glob("*.html"))
OTHERS = [language for language in languages() if language != DEFAULT]


def forms_of(template) -> list[str]:
    return list(template.values()) if isinstance(template, dict) else [template] if isinstance(template, str) else []


def fields_of(template) -> set[str]:
    return {name for form in forms_of(template) for _, name, _, _ in Formatter().parse(form) if name}


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_every_text_with_its_values(language):
    english, other = texts_of(DEFAULT), texts_of(language)
    own = [key for key in other.keys() if not key.startswith("said.")]  # noqa: SIM118 - no dict
    assert sorted(own) == sorted(english.keys())
    for key in english.keys():  # noqa: SIM118 - no dict
        assert fields_of(other.template(key)) == fields_of(english.template(key)), key
        assert type(other.template(key)) is type(english.template(key)), key


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_every_sentence_of_the_model_with_its_values(language):
    """The English sentences stand in the source, each once, with their codes."""
    other, made = texts_of(language), sentences_in_source()
    assert sorted(key for key in other.keys() if key.startswith("said.")) == sorted(map(said_key, made))  # noqa: SIM118
    for code, template in made.items():
        assert fields_of(other.template(said_key(code))) <= fields_of(template), code
        assert isinstance(other.template(said_key(code)), str), code
        assert other.text(said_key(code), **dict.fromkeys(fields_of(template), "x")), code


def sentences_in_source() -> dict[str, str]:
    """The templates of all sentences by their codes: the reasons, and what is given to `sentence`."""
    found = {f"reason.{code}": template for code, template in REASONS.items()}
    found |= {f"finding.{code}": template for code, template in FINDINGS.items()}
    found |= {f"field.{name}": label for name, label in LABELS.items()}
    for path in sorted(Path(rota.__file__).parent.rglob("*.py")):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if "rota.sentences" in source or path.name == "sentences.py" else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sentence":
                code, template = (ast.literal_eval(one) for one in node.args)
                assert found.setdefault(code, template) == template, f"two sentences have the code {code}"
    return found


def test_there_is_more_than_one_language():
    assert OTHERS


class Sentences(HTMLParser):
    """The words that a template itself says: text, and attributes that people read or hear."""

    QUIET = ("code", "pre", "kbd", "svg")
    READ = ("aria-label", "title", "placeholder", "alt")

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag in self.QUIET:
            self.inside.append(tag)
        self.found += [value for name, value in attrs if name in self.READ and has_words(value or "")]

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if not self.inside and has_words(data):
            self.found.append(data.strip())


def has_words(text: str) -> bool:
    return re.search(r"[^\W\d_]{2,}", text.replace("Rota", "")) is not None


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_says_nothing_by_itself(name):
    source = (FOLDER / "templates" / name).read_text("utf-8")
    source = re.sub(r"{% block kinds %}[a-z ]*{% endblock %}", "", source)  # names of events
    said = "".join(text for _, kind, text in environment().lex(source) if kind == "data")
    parser = Sentences()
    parser.feed(said)
    assert parser.found == []


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_escapes_everything_and_holds_no_style_or_script_of_its_own(name):
    source = (FOLDER / "templates" / name).read_text("utf-8")
    assert "|safe" not in source.replace(" ", "")
    assert "autoescape" not in source
    assert re.search(r"\sstyle=|\son[a-z]+=|<style|<script(?! type=\"module\" src=)", source) is None


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_text_that_a_template_names_exists(name):
    source = (FOLDER / "templates" / name).read_text("utf-8")
    texts = texts_of(DEFAULT)
    for key in re.findall(r"\bt\(\"([a-z_0-9.]+)\"\s*[,)]", source):
        assert texts.has(key), key


def test_values_are_escaped_and_links_are_not():
    texts = texts_of(DEFAULT)
    assert texts.text("jobs.tick", call="<b>") == "Select &lt;b&gt;"
    link = Markup('<a href="/x">x</a>')
    assert texts.text("jobs.tick", call=link) == 'Select <a href="/x">x</a>'


def test_numbers_and_plurals_follow_the_language():
    english, german = texts_of("en"), texts_of("de")
    assert english.text("flash.deleted", n=1) == "1 job was deleted."
    assert english.text("flash.deleted", n=12_345) == "12,345 jobs were deleted."
    assert german.text("flash.deleted", n=12_345) == "12.345 Jobs wurden gelöscht."


@pytest.mark.parametrize(
    ("cookie", "accepted", "chosen"),
    [
        ("", "", "en"),
        ("", "de-AT,de;q=0.9,en;q=0.8", "de"),
        ("", "fr, de;q=0.3, en;q=0.7", "en"),
        ("", "de;q=0, en;q=0.1", "en"),
        ("en", "de", "en"),
        ("xx", "de;q=nonsense", "en"),
        ("../../etc/passwd", "*", "en"),
    ],
)
def test_the_viewer_chooses_the_language_or_their_browser_does(cookie, accepted, chosen):
    assert chosen_language(cookie, accepted) == chosen


def test_every_answer_of_why_has_a_text_with_its_values():
    keys = {key_of(code) for code in codes_in_source()}
    assert {key for key in texts_of(DEFAULT).keys() if key.startswith("why.")} == keys  # noqa: SIM118 - no dict


SURPRISES = {  # a rule for each warning
    "gap.instead": cron("30 2 * * *", tz="America/New_York"),
    "gap.hourly": cron("*/20 * * * *", tz="America/New_York"),
    "gap.date": calendar(days=1, at="12:00", start=date(2011, 12, 1), tz="Pacific/Apia"),
    "repeat.once": cron("30 1 * * *", tz="America/New_York"),
    "repeat.both": cron("*/20 * * * *", tz="America/New_York"),
    "day.or": cron("0 0 13 * FRI"),
    "day.and": cron("0 0 */2 * FRI"),
    "step": cron("*/60 * * * *"),
    "every.minute": cron("* 9 * * *"),
    "every.second": cron("* * 9 * * ?", dialect="quartz"),
    "rare.never": cron("0 0 31 4,5 *"),
    "rare.leap": cron("0 0 29 2 *"),
    "rare.fifth": cron("0 0 * * MON#5"),
    "rare.skipped": calendar(months=1, at="00:05", start=date(2026, 1, 31), month_end="skip"),
    "rare.clamped": calendar(months=1, at="00:05", start=date(2026, 1, 31)),
}


@pytest.mark.parametrize("code", SURPRISES)
def test_every_warning_about_a_rule_has_a_text_with_its_values(code):
    after = datetime(2011, 12, 25, tzinfo=UTC) if code == "gap.date" else datetime(2026, 1, 1, tzinfo=UTC)
    caveat = next(one for one in SURPRISES[code].warnings(after=after) if one.code == code)
    german = Words(texts_of("de"), ZoneInfo("UTC"), after)
    assert warned(Words(texts_of(DEFAULT), ZoneInfo("UTC"), after), caveat) == escape(caveat.message)
    assert warned(german, caveat) != escape(caveat.message)
    assert fields_of(texts_of("de").template(f"warning.{code.replace('.', '_')}")) <= set(caveat.values)


def test_no_warning_about_a_rule_is_left_out():
    source = Path(rota.triggers.caveats.__file__).read_text("utf-8")
    codes = set(re.findall(r'"((?:gap|repeat|day|rare)\.[a-z]+|step)"', source)) | {"every.second", "every.minute"}
    assert codes == set(SURPRISES)


def phrases_of(language: str) -> Phrases:
    return texts_of(language).phrases


def test_the_english_phrases_of_a_rule_are_those_of_the_command_line():
    assert phrases_of(DEFAULT).table == ENGLISH.table


RULES = {  # a rule for each phrase
    cron("*/5 * * * *"): "Alle 5 Minuten, UTC",
    cron("7 * * * *"): "Zur Minute 7 jeder Stunde, UTC",
    cron("0 9 * * mon-fri", tz="Europe/Riga"): "Um 09:00 am Montag bis Freitag, Zeit in Europe/Riga",
    cron("0 9-17 * * *"): "Zur Minute 0 von 09:00 bis 17:59 jeden Tag, UTC",
    cron("*/10 */2 * * *"): "Alle 10 Minuten in jeder 2. Stunde ab 00:00 jeden Tag, UTC",
    cron("0 0 13 * 5"): "Um 00:00 am 13. des Monats oder am Freitag (eines genügt), UTC",
    cron("0 0 1,15 3 *"): "Um 00:00 an den Tagen 1 und 15 des Monats im März, UTC",
    cron("0 0 12 L-2 * ?", dialect="quartz"): "Um 12:00 2 Tage vor dem letzten Tag des Monats, UTC",
    cron("0 0 12 ? * 6L 2027-2028", dialect="quartz"): (
        "Um 12:00 am letzten Freitag des Monats in den Jahren 2027 und 2028, UTC"
    ),
    cron("*/30 5 * * * ?", dialect="quartz"): "Alle 30 Sekunden der Minute 5 jeder Stunde, UTC",
    every("90m"): "Alle 1 Stunde 30 Minuten",
    every("1d"): "Jeden Tag",
    once(datetime(2026, 11, 18, 9, tzinfo=UTC), tz="UTC"): "Einmal, am 2026-11-18 um 09:00:00, UTC",
    calendar(weeks=2, at="09:00", on="tue", start=date(2026, 1, 1), tz="UTC"): (
        "Alle 2 Wochen am Dienstag um 09:00 ab 2026-01-01, UTC"
    ),
    calendar(years=1, at="09:00", start=date(2026, 3, 15), tz="UTC"): (
        "Jedes Jahr am 15. März um 09:00 ab 2026-03-15, UTC"
    ),
}


@pytest.mark.parametrize(("rule", "german"), RULES.items(), ids=str)
def test_a_rule_is_a_sentence_in_the_viewers_language(rule, german):
    assert rule.explain(phrases_of("de")) == german
    assert rule.explain(phrases_of(DEFAULT)) == rule.explain()


def spoken(text: str) -> str:
    """A text of the source or of the catalogue, with a place for each value and without the ends of its lines."""
    joined = re.sub(r"""["']\s*\n\s*f?["']""", "", text)
    return re.sub(r"{[^{}]*}", "{}", joined)


ADVICE = {key: str(texts_of(DEFAULT).template(key)) for key in texts_of(DEFAULT).keys() if key.startswith("fix.")}  # noqa: SIM118
MADE = ("_copy", "_there", "step", "steps", "why")  # put together from parts, or a command alone


@pytest.mark.parametrize("key", [key for key in ADVICE if not key.endswith(MADE)])
def test_what_why_advises_is_what_the_catalogue_translates(key):
    source = "\n".join(path.read_text("utf-8") for path in sorted(Path(rota.model.why.__file__).parent.glob("*.py")))
    assert spoken(ADVICE[key]) in spoken(source)


@pytest.mark.parametrize("key", ADVICE)
def test_advice_is_said_in_the_viewers_language(key):
    german, now = Words(texts_of("de"), ZoneInfo("UTC"), datetime(2026, 1, 1, tzinfo=UTC)), ADVICE["fix.traceback"]
    values = dict.fromkeys(fields_of(ADVICE[key]), "a-7")
    own = str(texts_of("de").template(key)).format(**values)
    assert fixed(german, f"{ADVICE[key].format(**values)} {now.format(job='b')}") == with_code(
        f"{own} `rota jobs show b` hat den Traceback."
    )


def test_advice_that_the_catalogue_lacks_stays_in_english():
    german = Words(texts_of("de"), ZoneInfo("UTC"), datetime(2026, 1, 1, tzinfo=UTC))
    assert fixed(german, "Do `this` <now>.") == "Do <code>this</code> &lt;now&gt;."
