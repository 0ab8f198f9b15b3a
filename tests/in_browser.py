"""A page in a real headless Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

PROBE = """
<script>
addEventListener("load", () => {
  const found = {};
  try { %s } catch (error) { found.error = String(error); }
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
});
</script>
</body>"""


def in_browser(tmp_path: Path, html: str, script: str, width: int = 1280, is_dark: bool = False) -> dict[str, Any]:
    """Run `script` in the loaded page; it fills the object `found`, which comes back. Nothing may be on the console."""
    scheme = "--blink-settings=preferredColorScheme=" + ("0" if is_dark else "1")
    page = tmp_path / "report.html"
    page.write_text(html.replace("</body>", PROBE % script), encoding="utf-8")
    assert CHROMIUM is not None
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", scheme, f"--user-data-dir={tmp_path / 'profile'}",
         f"--window-size={width},1000", "--enable-logging=stderr", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert console == []
    match = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert match is not None
    found: dict[str, Any] = json.loads(unescape(match[1]))
    assert "error" not in found, found["error"]
    return found
