"""The page's thread: jobs in order, errors of callers' jobs, and interrupts of callers at every bytecode."""

import queue
import sys
import threading
from types import SimpleNamespace

import pytest

from featherlane.apps.viewer import lock
from featherlane.apps.viewer.view import View
from featherlane.apps.viewer.worker import Worker

SECONDS = 20.0


def interrupted(call, at):
    """Returns whether a call raises KeyboardInterrupt before its bytecode of this number; False if it has fewer."""
    left = at

    def trace(frame, event, arg):
        nonlocal left
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if left < 0:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_jobs_run_in_order_and_errors_return_to_the_caller():
    worker, done = Worker(), []
    for k in range(5):
        worker.do(lambda k=k: done.append(k))
    worker.do(lambda: 1 / 0)
    assert worker.ask(lambda: list(done), SECONDS) == [0, 1, 2, 3, 4]
    with pytest.raises(ZeroDivisionError):
        worker.ask(lambda: 1 / 0)
    assert worker.ask(lambda: worker.ask(lambda: "within"), SECONDS) == "within"
    worker.end(lambda: done.append("last"), SECONDS)
    worker.end(lambda: done.append("never"), SECONDS)
    assert done[5:] == ["last"]
    with pytest.raises(RuntimeError, match="closed"):
        worker.ask(lambda: None)


def test_a_busy_worker_is_reported_and_finishes_later():
    worker, gate = Worker(), threading.Event()
    worker.do(gate.wait)
    with pytest.raises(RuntimeError, match="busy"):
        worker.ask(lambda: None, 0.01)
    ended = threading.Event()
    worker.end(ended.set, 0.01)
    gate.set()
    assert ended.wait(SECONDS)


def test_callers_get_an_error_after_an_error_between_jobs(monkeypatch):
    reported = queue.SimpleQueue()
    monkeypatch.setattr(sys, "unraisablehook", lambda seen: reported.put(str(seen.exc_value)))
    worker = Worker()

    def fail():
        raise ValueError("between jobs")

    assert worker.ask(lambda: setattr(worker, "turn", fail), SECONDS) is None
    while True:  # the thread may take one job before it fails
        try:
            worker.ask(lambda: None)
        except RuntimeError as error:
            assert "closed" in str(error)
            break
    assert reported.get(timeout=SECONDS) == "between jobs"


def test_jobs_put_at_the_end_are_refused():
    """Callers of a page that closes do not wait: some of their jobs arrive after the thread's last look."""
    for _ in range(200):
        worker, answers = Worker(), queue.SimpleQueue()

        def call(worker=worker, answers=answers):
            try:
                answers.put(worker.ask(lambda: "done"))
            except RuntimeError:
                answers.put("refused")

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        worker.end(lambda: None, SECONDS)
        assert {answers.get(timeout=SECONDS) for _ in threads} <= {"done", "refused"}


def test_an_interrupt_at_any_bytecode_leaves_the_worker_usable():
    def interrupt(at):
        """Returns whether the bytecode was reached."""
        worker, done = Worker(), []
        asked = interrupted(lambda: worker.ask(lambda: done.append("job")), at)
        assert worker.ask(lambda: "here", SECONDS) == "here"
        ended = interrupted(lambda: worker.end(lambda: done.append("end"), SECONDS), at)
        worker.end(lambda: done.append("end"), SECONDS)
        assert done.count("end") == 1 and done.count("job") <= 1
        return asked or ended

    assert next(at for at in range(10_000) if not interrupt(at)) > 50


def test_an_interrupt_at_any_bytecode_leaves_a_page_that_can_be_closed(monkeypatch):
    running = []
    server = SimpleNamespace(get_port=lambda: 1, get_clients=lambda: ())
    monkeypatch.setattr(lock, "start_server", lambda *_: (running.append(1), server)[1])
    monkeypatch.setattr(lock, "stop_server", lambda _: running.pop())

    def interrupt(at):
        """Returns whether the bytecode was reached; a started server is stopped once."""
        views = []
        reached = interrupted(lambda: views.append(View("127.0.0.1", 0, None)), at)
        for view in views:
            reached |= interrupted(view.close, at)
            view.close()
        assert not running or not views
        running.clear()
        return reached

    assert next(at for at in range(10_000) if not interrupt(at)) > 50
