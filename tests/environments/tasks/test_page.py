"""docs/tasks.md matches the tasks."""

from pathlib import Path

from pages import tasks

PAGE = Path(__file__).parents[3] / "docs" / "tasks.md"


def test_the_table_of_tasks_is_up_to_date():
    written = PAGE.read_text().split(tasks.BEGIN)[1].split(tasks.END)[0].strip()
    assert written == tasks.table(), "python docs/tasks.py"
