"""The outbox against real receivers: down, slow, picky or well; nothing is lost, nothing comes out of order."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from graspad.errors import InputError, InvalidSettingError
from graspad.webhook import Outbox

FAST = {"first_pause": 0.02, "longest_pause": 0.1, "timeout": 2.0}


def events(count: int) -> list[dict]:
    return [{"id": f"pump7-{n // 2}", "event": ("opened", "closed")[n % 2], "score": n / 7} for n in range(count)]


def keys(items: list[dict]) -> list[str]:
    return [f"{item['id']}/{item['event']}" for item in items]


class Receiver(ThreadingHTTPServer):
    """Answers each post with the next of `answers`, then with 200; None hangs until the end of the test."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server_bind()  # the port is ours, but whoever calls is refused until `up`
        self.answers, self.posts, self.times, self.taken = [], [], [], []
        self.arrived, self.over, self.is_up = threading.Condition(), threading.Event(), False
        self.url = f"http://127.0.0.1:{self.server_port}/hook/secret?a=1"

    def up(self, *answers):
        self.answers = list(answers)
        self.is_up = True
        self.server_activate()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def wait_for(self, posts: int):
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.posts) >= posts, 5)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.arrived:
            answer = self.server.answers.pop(0) if self.server.answers else 200
            self.server.times.append(time.monotonic())
            self.server.posts.append((self.path, self.headers, body))
            if answer in (200, 202):
                self.server.taken.append(body)
            self.server.arrived.notify_all()
        if answer is None:
            self.server.over.wait(10)
            return
        status, headers = answer if isinstance(answer, tuple) else (answer, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self):
        raise AssertionError("a redirected post must not become a GET")

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Receiver()
    yield server
    server.over.set()
    if server.is_up:
        server.shutdown()
    server.server_close()


@pytest.fixture
def told():
    return []


def test_events_arrive_in_order_with_body_and_headers(receiver, told):
    receiver.up(202)
    outbox = Outbox(receiver.url, on_problem=told.append, **FAST)
    for event in events(6):
        outbox.add(event)
    assert outbox.close(5) == outbox.waiting == told == []
    assert receiver.taken == events(6)
    assert [headers["Idempotency-Key"] for _, headers, _ in receiver.posts] == keys(events(6))
    assert {(path, headers["Content-Type"]) for path, headers, _ in receiver.posts} == {
        ("/hook/secret?a=1", "application/json")
    }


def test_what_the_receiver_missed_arrives_once_and_in_order(receiver, told):
    outbox = Outbox(receiver.url, events(3), on_problem=told.append, **FAST)
    for event in events(6)[3:]:
        outbox.add(event)
    time.sleep(0.3)
    assert outbox.waiting == events(6)
    receiver.up()
    receiver.wait_for(6)
    assert outbox.close(5) == []
    assert receiver.taken == events(6)
    assert len(told) == 2, "one line when it begins, one when it ends"
    assert "refused" in told[0]
    assert "again" in told[1]
    assert "secret" not in "".join(told)


@pytest.mark.parametrize("status", [500, 503, 408, 425, 429, 302, 307])
def test_a_passing_failure_is_tried_again(receiver, told, status):
    headers = {"Location": "/elsewhere"} if status < 400 else {}
    receiver.up((status, headers), (status, headers))
    outbox = Outbox(receiver.url, events(2), on_problem=told.append, **FAST)
    receiver.wait_for(4)
    assert outbox.close(5) == []
    assert keys([body for *_, body in receiver.posts]) == keys(events(1) * 2 + events(2))
    assert len(told) == 2
    assert f"HTTP {status}" in told[0]


@pytest.mark.parametrize(("asked", "longest", "low", "high"), [("1", 5.0, 1.0, 2.0), ("3600", 0.4, 0.4, 1.4)])
def test_retry_after_is_obeyed_up_to_the_longest_pause(receiver, told, asked, longest, low, high):
    receiver.up((429, {"Retry-After": asked}))
    outbox = Outbox(receiver.url, events(1), on_problem=told.append, first_pause=0.02, longest_pause=longest)
    receiver.wait_for(2)
    assert outbox.close(5) == []
    assert low <= receiver.times[1] - receiver.times[0] < high


def test_a_retry_after_that_is_no_number_of_seconds_is_left_alone(receiver, told):
    receiver.up((503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), (503, {"Retry-After": "-3"}))
    outbox = Outbox(receiver.url, events(1), on_problem=told.append, **FAST)
    assert outbox.close(5) == []


def test_pauses_grow_to_the_longest(receiver, told):
    receiver.up(*[500] * 6)
    outbox = Outbox(receiver.url, events(1), on_problem=told.append, first_pause=0.05, longest_pause=0.2)
    receiver.wait_for(7)
    assert outbox.close(5) == []
    pauses = [later - sooner for sooner, later in zip(receiver.times, receiver.times[1:], strict=False)]
    for pause, bound in zip(pauses, [0.05, 0.1, 0.2, 0.2, 0.2, 0.2], strict=True):
        assert bound / 2 <= pause < bound + 0.5


def test_a_refused_event_is_told_and_dropped_and_the_next_go_on(receiver, told):
    receiver.up(200, 400, 200, 404)
    outbox = Outbox(receiver.url, events(5), on_problem=told.append, **FAST)
    assert outbox.close(5) == []
    assert keys(receiver.taken) == [keys(events(5))[n] for n in (0, 2, 4)]
    assert len(receiver.posts) == 5
    assert len(told) == 2
    assert "pump7-0/closed" in told[0]
    assert "HTTP 400" in told[0]


def test_a_hanging_receiver_is_tried_again_and_the_event_waits_meanwhile(receiver, told):
    receiver.up(None)
    outbox = Outbox(receiver.url, events(2), on_problem=told.append, first_pause=0.02, timeout=0.7)
    receiver.wait_for(1)
    assert outbox.waiting == events(2), "an event on its way still waits"
    receiver.wait_for(3)
    assert outbox.close(5) == []
    assert receiver.taken == events(2)
    assert "timed out" in told[0]


def test_a_connection_cut_in_the_middle_is_tried_again(receiver, told):
    receiver.over.set()  # "hang" now means to hang up without an answer
    receiver.up(None, None)
    outbox = Outbox(receiver.url, events(2), on_problem=told.append, **FAST)
    receiver.wait_for(4)
    assert outbox.close(5) == []
    assert receiver.taken == events(2)


def test_close_waits_no_longer_than_asked_and_a_new_outbox_delivers_the_rest(receiver, told):
    receiver.up(200, None)
    outbox = Outbox(receiver.url, events(4), on_problem=told.append, timeout=5.0)
    receiver.wait_for(2)
    began = time.monotonic()
    left = outbox.close(0.2)
    assert 0.15 < time.monotonic() - began < 1
    assert left == events(4)[1:]
    began = time.monotonic()
    assert outbox.close(60) == left, "a second close has nothing to wait for"
    assert time.monotonic() - began < 1
    saved = json.loads(json.dumps(left))
    assert Outbox(receiver.url, saved, on_problem=told.append, **FAST).close(5) == []
    assert Counter(keys(receiver.taken)) == Counter(keys(events(4)))
    assert len(receiver.posts) == 5, "the closed outbox posts no more"


def test_close_gives_a_resting_outbox_a_last_chance_at_once(receiver, told):
    receiver.up((503, {"Retry-After": "50"}))
    outbox = Outbox(receiver.url, events(2), on_problem=told.append)
    receiver.wait_for(1)
    began = time.monotonic()
    while not told:
        time.sleep(0.01)
    assert outbox.close(5) == []
    assert time.monotonic() - began < 4


def test_after_close_an_event_only_waits(receiver, told):
    receiver.up()
    outbox = Outbox(receiver.url, events(1), on_problem=told.append, **FAST)
    assert outbox.close(5) == []
    outbox.add(events(1)[0])
    time.sleep(0.1)
    assert outbox.waiting == events(1)
    assert len(receiver.posts) == 1


def test_the_oldest_opened_event_is_lost_first_and_loudly(receiver, told):
    outbox = Outbox(receiver.url, on_problem=told.append, limit=4, first_pause=60)
    for event in events(7):
        outbox.add(event)
    assert keys(outbox.waiting) == ["pump7-0/opened", "pump7-0/closed", "pump7-1/closed", "pump7-2/closed"]
    assert outbox.close(0) == outbox.waiting
    lost = [line for line in told if "LOST" in line]
    assert [line.split()[1] for line in lost] == ["pump7-1/opened:", "pump7-2/opened:", "pump7-3/opened:"]


def test_without_an_opened_event_the_oldest_but_the_first_is_lost(receiver, told):
    closed = [{"id": n, "event": "closed"} for n in range(5)]
    outbox = Outbox(receiver.url, closed, on_problem=told.append, limit=3, first_pause=60)
    assert [event["id"] for event in outbox.close(0)] == [0, 3, 4]


def test_many_threads_may_add(receiver, told):
    receiver.up(500, 200, 500)
    outbox = Outbox(receiver.url, on_problem=told.append, **FAST)
    names = [[{"id": f"{who}-{n}", "event": "opened"} for n in range(20)] for who in range(4)]
    threads = [threading.Thread(target=lambda mine=mine: [outbox.add(event) for event in mine]) for mine in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outbox.close(5) == []
    for mine in names:
        assert [event for event in receiver.taken if event in mine] == mine


def test_later_changes_by_the_caller_do_not_reach_an_event(receiver, told):
    event = {"id": 1, "event": "opened", "sensors": ("a", "b")}
    outbox = Outbox(receiver.url, on_problem=told.append, **FAST)
    outbox.add(event)
    event["id"] = 2
    assert outbox.close(0) == [{"id": 1, "event": "opened", "sensors": ["a", "b"]}]


def test_a_name_no_header_can_carry_is_escaped(receiver, told):
    receiver.up()
    names = ["泵 7", "a\r\nX: b", "2024-05-01T10:00:00+02:00#3", "bad\udc80"]
    outbox = Outbox(receiver.url, [{"id": name, "event": "opened"} for name in names], on_problem=told.append, **FAST)
    assert outbox.close(5) == told == []
    assert [body["id"] for *_, body in receiver.posts] == names
    sent = [headers["Idempotency-Key"] for _, headers, _ in receiver.posts]
    assert sent[0] == "%E6%B3%B5%207/opened"
    assert sent[2] == "2024-05-01T10:00:00+02:00#3/opened"


def test_a_callback_that_fails_does_not_stop_the_posts(receiver):
    receiver.up(400, 500)
    outbox = Outbox(receiver.url, events(3), on_problem=lambda line: 1 / 0, **FAST)
    assert outbox.close(5) == []
    assert receiver.taken == events(3)[1:]


def test_problems_go_to_stderr_by_default(receiver, capsys):
    receiver.up(400)
    assert Outbox(receiver.url, events(1), **FAST).close(5) == []
    assert capsys.readouterr().err.startswith("webhook: http://127.0.0.1:")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com/hook",
        "localhost:8080/hook",
        "ftp://example.com/hook",
        "file:///etc/passwd",
        "http://",
        "https:///hook",
        "http://:80/hook",
        "http://example.com:port/",
        "http://example.com:99999/",
        "http://[::1/",
        "http://a..b/",
        "http://example.com/a b",
        "http://example.com/a\nb",
        "http://exämple.com/",
        "http://user:password@example.com/",
    ],
)
def test_an_address_nobody_can_post_to_is_refused_at_once(url):
    with pytest.raises(InvalidSettingError, match=r"https://example\.com/alarms") as caught:
        Outbox(url)
    assert repr(url) in str(caught.value)


def test_an_event_nobody_can_post_is_refused_at_once(receiver, told):
    outbox = Outbox(receiver.url, on_problem=told.append, **FAST)
    with pytest.raises(InputError, match="'id' and 'event'"):
        outbox.add({"id": 3})
    with pytest.raises(ValueError, match="JSON"):
        outbox.add({"id": 3, "event": "opened", "score": float("nan")})
    assert outbox.close(0) == []


def test_the_end_of_the_process_does_not_wait_for_the_receiver(receiver):
    receiver.up(None)
    code = (
        "import sys; from graspad.webhook import Outbox; "
        "outbox = Outbox(sys.argv[1], [{'id': 1, 'event': 'opened'}]); sys.stdin.readline()"
    )
    with subprocess.Popen([sys.executable, "-c", code, receiver.url], stdin=subprocess.PIPE) as process:
        receiver.wait_for(1)
        began = time.monotonic()
        process.communicate(b"\n", timeout=8)
    assert process.returncode == 0
    assert time.monotonic() - began < 5
