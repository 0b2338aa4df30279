"""Draws the hidden units of two networks beside each other: before-after.svg in this folder.

Usage: picture.py BEFORE.json AFTER.json > before-after.svg

Both files are what `leo analyze --domain 0,1 --json` prints. A dot is a unit: white is always off, blue is always on, grey can be
either.
"""

import json
import sys

FILL = {"inactive": "#ffffff", "active": "#3b7dd8", "unstable": "#9a9a9a", "undecided": "#f0c040"}
PITCH, ROWS, TOP = 14, 10, 62


def draw(path, left, title):
    report = json.load(open(path))
    layers, inputs = report["layers"], report["domain"]["inputs"]
    shapes = [f'<text x="{left}" y="24" class="title">{title}: {report["totals"]["units"]} units</text>']
    x = left
    for name, width, units in [("pixels", inputs, None), *((l["name"], l["width"], l["units"]) for l in layers)]:
        if units is None:
            shapes.append(f'<rect x="{x}" y="{TOP}" width="20" height="{ROWS * PITCH - 2}" rx="4" class="box"/>')
            advance = 20
        else:
            for index, unit in enumerate(units):
                column, row = divmod(index, ROWS)
                fill, cx, cy = FILL[unit["status"]], x + 6 + column * PITCH, TOP + 6 + row * PITCH
                shapes.append(f'<circle cx="{cx}" cy="{cy}" r="5" fill="{fill}" class="unit"/>')
            advance = ((width - 1) // ROWS + 1) * PITCH - 2
        shapes.append(f'<text x="{x + advance / 2}" y="50" class="label">{width}</text>')
        x += advance
        shapes.append(f'<path d="M{x + 5} {TOP + 69} h18 m-5 -4 l5 4 l-5 4" class="arrow"/>')
        x += 30
    shapes.append(f'<text x="{x}" y="{TOP + 73}" class="title">scores</text>')
    return shapes, x + 50


before, middle = draw(sys.argv[1], 16, "before")
after, right = draw(sys.argv[2], middle + 34, "after")
legend = []
for index, (status, words) in enumerate([("inactive", "always off"), ("active", "always on"), ("unstable", "can be on and off")]):
    x = 22 + index * 110
    legend.append(f'<circle cx="{x}" cy="{TOP + 164}" r="5" fill="{FILL[status]}" class="unit"/>')
    legend.append(f'<text x="{x + 10}" y="{TOP + 168}" class="title">{words}</text>')
print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + 16} {TOP + 182}" role="img" font-family="sans-serif" font-size="12">')
print("<title>The hidden units of a network before and after</title>")
print("<style>.unit{stroke:#555;stroke-width:.8}.box{fill:#e8e8e8;stroke:#555;stroke-width:.8}.arrow{fill:none;stroke:#555}"
      ".title{fill:#222}.label{fill:#222;text-anchor:middle}</style>")
print('<rect width="100%" height="100%" fill="#fdfdfd"/>')
print("\n".join(before + after + legend))
print("</svg>")
