"""A headless Chromium, driven over a pipe by the DevTools protocol: what a test of a page needs, and no more."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "apt-get install --yes --no-install-recommends chromium"
PATIENCE = 60  # seconds; a busy machine starts a browser slowly


def find_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install_chromium() -> str | None:
    """Debian's package, where this process may install it; None where it may not, or cannot."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 600}
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with contextlib.suppress(subprocess.SubprocessError):
        if subprocess.run(INSTALL.split(), env=environment, **quiet).returncode != 0:
            subprocess.run(["apt-get", "update"], env=environment, **quiet)
            subprocess.run(INSTALL.split(), env=environment, **quiet)
    return find_chromium()


class Chromium:
    """One browser process. Every message goes over its file descriptors 3 and 4, ended by a zero byte."""

    def __init__(self, program: str, profile: Path) -> None:
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        arguments = [
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-sandbox",  # tests run as root in containers
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            f"--user-data-dir={profile}",
            "about:blank",
        ]

        def take_pipes() -> None:
            # Away from 3 and 4 first: each end may sit where the other belongs.
            reading, writing = os.dup(to_browser), os.dup(from_browser)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(
            [program, *arguments],
            preexec_fn=take_pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.number = 0
        self.events: list[dict] = []

    def close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)

    def call(self, method: str, session: str | None = None, **parameters: object) -> dict:
        """Send a command and wait for its answer; events that come meanwhile are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(PATIENCE)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def receive(self, seconds: float) -> dict:
        until = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium does not answer")
            part = os.read(self.read_end, 1 << 20)
            if not part:
                raise RuntimeError("Chromium has ended")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)


class Page:
    """A tab with one page, at one size, and all that happened in it."""

    def __init__(self, browser: Chromium, width: int, height: int, *, phone: bool = False, dark: bool = False) -> None:
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method: str, **parameters: object) -> dict:
        return self.browser.call(method, self.session, **parameters)

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)

    def open(self, path: Path) -> None:
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def wait_for(self, expression: str) -> None:
        until = time.monotonic() + PATIENCE
        while not self.run(expression):
            if time.monotonic() > until:
                raise TimeoutError(expression)
            time.sleep(0.05)

    def run(self, expression: str) -> object:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """A real click of the mouse, in the middle of the element."""
        where = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center',"
            " inline: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        place = {"x": where[0], "y": where[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **place)

    def press(self, key: str, text: str = "") -> None:
        code = {"Enter": 13, "Tab": 9}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def happened(self, method: str) -> list[dict]:
        """The parameters of all events of one kind so far."""
        self.run("1")  # events before this answer have arrived
        return [
            event["params"]
            for event in self.browser.events
            if event.get("method") == method and event.get("sessionId") == self.session
        ]

    def complaints(self) -> list[str]:
        """Errors and warnings in the console, exceptions, and what the browser itself logs."""
        console = [f"console: {event}" for event in self.happened("Runtime.consoleAPICalled")]
        thrown = [f"exception: {event}" for event in self.happened("Runtime.exceptionThrown")]
        return console + thrown + [f"log: {event['entry']}" for event in self.happened("Log.entryAdded")]

    def addresses(self) -> list[str]:
        """Of everything the page asked for."""
        return [event["request"]["url"] for event in self.happened("Network.requestWillBeSent")]

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def print(self, path: Path) -> None:
        sheet = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(sheet["data"]))
