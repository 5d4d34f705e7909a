#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws dashboard.svg from deploy/chart/files/monitoring/dashboard.json, with invented sample data: the last three hours of
cluster east, whose member west was silent for ten minutes."""

import html
import json
import math
import pathlib
import random

HERE = pathlib.Path(__file__).parent
PANELS = json.loads((HERE / "../../deploy/chart/files/monitoring/dashboard.json").read_text())["panels"]
WIDTH, UNIT, POINTS, COLORS = 1200, 22, 90, ["#73bf69", "#5794f2", "#f2cc0c", "#ff9830", "#b877d9"]
random.seed(1)


def constant(value):
    return [value] * POINTS


def noise(value, spread):
    return [value * (1 + spread * (random.random() - 0.5)) for _ in range(POINTS)]


def during(value, normal=0):
    return [value if 50 <= i < 55 else normal for i in range(POINTS)]


HEARD = noise(3, 1.2)
# By title: the values of stats, or the series of graphs.
SAMPLES = {
    "Members by state": [("fresh", "2"), ("stale", "0")],
    "Stale or gone": [("", "none")],
    "All members unreachable": [("", "no")],
    "Leaders": [("", "1")],
    "Invalid credentials": [("", "0")],
    "MCS API served": [("", "v1beta1")],
    "Versions of the controller": [("", "0.1.0")],
    "Heartbeat age": {"north": noise(3, 1.2), "west": [120 * (i - 49) if 50 <= i < 55 else HEARD[i] for i in range(POINTS)]},
    "Connected": {"north": constant(1), "west": during(0, 1)},
    "Partially imported services": {},
    "Not synced": {"west not synced": constant(0)},
    "Exports and imports": {"exports": constant(12), "imports ClusterSetIP": constant(19), "imports Headless": constant(6)},
    "Conflicts": {"PortConflict": [0 if i < 62 else 1 for i in range(POINTS)]},
    "Not valid or not ready": {},
    "Over a limit": {"west services": constant(0), "north services": constant(0)},
    "Nodes without a zone": {"": constant(0)},
    "Reconcile duration": {"p50": noise(0.004, 0.2), "p99": noise(0.011, 0.5)},
    "Reconciles": {"ok": noise(1.4, 0.8), "error": constant(0)},
    "Queue": {"": [random.choice([0, 0, 0, 1, 2]) for _ in range(POINTS)]},
    "DNS programming": {"p50": noise(0.009, 0.3), "p99": noise(0.016, 0.5)},
    "Age of the state": {"dns-0 serviceimports": noise(35, 1.2), "dns-0 endpointslices": noise(20, 1.4)},
    "Watches healthy": {"dns-0 serviceimports": constant(1), "dns-0 endpointslices": constant(1)},
    "Watch errors": {},
    "Services": {"dns-0 ClusterSetIP": constant(19), "dns-0 Headless": constant(6)},
    "Objects held": {"dns-0 serviceimports": constant(25), "dns-0 endpointslices": constant(74)},
    "Skipped": {},
}


def show(value, unit):
    if unit == "s" and 0 < value < 1:
        return f"{value * 1000:.0f} ms"
    return f"{value:g}" + {"s": " s", "ops": "/s"}.get(unit, "")


def text(x, y, content, size=11, color="#ccccdc", anchor="start"):
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{color}" text-anchor="{anchor}">{html.escape(content)}</text>'


def stat(panel, x, y, w, h):
    filled = panel["options"]["colorMode"] == "background"
    yield f'<rect x="{x + 6}" y="{y + 26}" width="{w - 12}" height="{h - 32}" fill="{"#37872d" if filled else "none"}"/>'
    values = SAMPLES[panel["title"]]
    for i, (name, value) in enumerate(values):
        middle = x + w * (2 * i + 1) / (2 * len(values))
        yield text(middle, y + h * 0.62, value, 30, "#ffffff", "middle")
        yield text(middle, y + h * 0.62 + 22, name, 12, anchor="middle")


def graph(panel, x, y, w, h):
    series, unit = SAMPLES[panel["title"]], panel["fieldConfig"]["defaults"]["unit"]
    left, top, right, bottom = x + 52, y + 34, x + w - 12, y + h - 40
    if not series:
        yield text((left + right) / 2, (top + bottom) / 2, "No data", 13, "#8e8e99", "middle")
        return
    limit = max(1e-9, *(max(values) for values in series.values()))
    step = 10 ** math.floor(math.log10(limit)) if limit > 1e-6 else 1
    limit = next((m * step for m in (1, 2, 5, 10) if m * step >= limit), 1) if limit > 1e-6 else 1
    for part in (0, 0.5, 1):
        height = bottom - part * (bottom - top)
        yield f'<path d="M{left} {height:.0f}H{right}" stroke="#2c3235"/>' + text(left - 6, height + 4, show(part * limit, unit), 10, "#8e8e99", "end")
    for hour in range(4):
        yield text(left + hour * (right - left) / 3, bottom + 14, f"{9 + hour:02}:00", 10, "#8e8e99", "end" if hour == 3 else "middle")
    at = left
    for i, (name, values) in enumerate(series.items()):
        points = " ".join(f"{left + n * (right - left) / (POINTS - 1):.0f},{bottom - v / limit * (bottom - top):.1f}" for n, v in enumerate(values))
        yield f'<polyline points="{points}" fill="none" stroke="{COLORS[i]}" stroke-width="1.3"/>'
        if name:
            yield f'<rect x="{at}" y="{y + h - 14}" width="10" height="3" fill="{COLORS[i]}"/>' + text(at + 14, y + h - 9, name, 10)
        at += 26 + 6 * len(name)


def draw():
    bottom = 0
    for panel in PANELS:
        box = panel["gridPos"]
        x, w = box["x"] * WIDTH / 24 + 3, box["w"] * WIDTH / 24 - 6
        y, h = box["y"] * UNIT + 34, box["h"] * UNIT - 6
        bottom = max(bottom, y + h)
        if panel["type"] == "row":
            yield text(x + 4, y + 13, "⌄ " + panel["title"], 14)
            continue
        yield f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="2" fill="#181b1f" stroke="#25272e"/>' + text(x + 8, y + 18, panel["title"], 12)
        yield from (stat if panel["type"] == "stat" else graph)(panel, x, y, w, h)
    yield text(8, 22, "clusterset-dns (drawn from dashboard.json with sample data)", 15)
    yield bottom


*body, height = draw()
(HERE / "dashboard.svg").write_text(
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + 10}" font-family="DejaVu Sans, Helvetica, sans-serif">\n'
    f'<rect width="{WIDTH}" height="{height + 10}" fill="#111217"/>\n' + "\n".join(body) + "\n</svg>\n"
)
