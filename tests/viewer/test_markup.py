"""Texts of the page: values are never markup, and no text is Markdown."""

from pathlib import Path

import featherlane
from featherlane.apps.viewer.markup import Prose, markup


class Gui:
    """Counts the messages to the page."""

    def __init__(self):
        self.content, self.sent = "", -1

    def add_html(self, content):
        self.content = content
        return self

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "content":
            super().__setattr__("sent", getattr(self, "sent", 0) + 1)


def test_values_are_escaped_and_templates_are_not():
    assert markup("<b>{}</b> {}", "<i>&\"'", "{x}") == "<b>&lt;i&gt;&amp;&quot;&#x27;</b> {x}"


def test_values_can_be_encoded_and_are_short():
    assert markup("{}", "a\udcff") == "a?"
    assert len(markup("{}", "n" * 10**6)) < 5000


def test_an_equal_text_is_not_sent_again():
    gui = Gui()
    prose = Prose(gui)
    assert prose.content == ""
    prose.show("<b>{}</b>", "<a>")
    sent = gui.sent
    prose.show("<b>{}</b>", "<a>")
    assert gui.sent == sent and "<b>&lt;a&gt;</b>" in prose.content


def test_no_other_file_sends_markup():
    """Markdown and HTML of viser are written in one file only."""
    folder = Path(featherlane.__file__).parent / "apps" / "viewer"
    found = {
        path.name for path in folder.rglob("*.py") for call in ("add_html", "add_markdown") if call in path.read_text()
    }
    assert found == {"markup.py"}
