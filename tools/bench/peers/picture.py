"""Pictures of benchmarks: SVG in the reader's light or dark."""
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #222 } .small { font-size: 11px; fill: #666 }
  .lockstep { fill: #2563eb } .pytorch { fill: #e07a3f } .torchtitan { fill: #8a8f98 }
  .line { fill: none; stroke-width: 1.6; stroke: #2563eb } .line.pytorch { stroke: #e07a3f }
  .line.torchtitan, .line.ideal { stroke: #8a8f98 } .line.ideal { stroke-dasharray: 4 4 }
  .axis { stroke: #bbb } .back { fill: #fff }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd } .small { fill: #999 } .axis { stroke: #555 } .back { fill: #0d1117 }
    .lockstep { fill: #6ea8fe } .line { stroke: #6ea8fe } }
"""


def text(x, y, words, kind="", anchor="start"):
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'


def line(kind, points):
    return f'<polyline class="line {kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def rule(x1, x2, y):
    return f'<line class="axis" x1="{x1}" x2="{x2}" y1="{y:.0f}" y2="{y:.0f}"/>'


def write(path, width, height, what, parts):
    """`what`: for those who do not see it."""
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" role="img" '
                    f'aria-label="{what}"><style>{STYLE}</style>'
                    f'<rect class="back" width="{width}" height="{height:.0f}"/>{"".join(parts)}</svg>\n')
