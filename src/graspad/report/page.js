"use strict";
const figures = JSON.parse(document.getElementById("figures").textContent);
// Without a mouse there is no hovering, and a finger on a chart should scroll the page.
const mouse = matchMedia("(hover: hover) and (pointer: fine)").matches;
const config = {
  displayModeBar: mouse ? "hover" : false,
  responsive: true,
  displaylogo: false,
  // A list of what may be there: plotly also has a button that sends the chart to a server.
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};

// Replace {css: "--name"} by the colour that the style sheet has for it now.
function painted(value, style) {
  if (value === null || typeof value !== "object") return value;
  if (typeof value.css === "string") return style.getPropertyValue(value.css).trim();
  if (Array.isArray(value)) return typeof value[0] === "object" ? value.map((item) => painted(item, style)) : value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, painted(item, style)]));
}

function draw(chart, width) {
  const { data, layout } = painted(figures[chart.dataset.figure], getComputedStyle(document.documentElement));
  return Plotly.react(chart, data, { ...layout, width, dragmode: mouse ? "zoom" : false }, config);
}

const charts = [...document.querySelectorAll(".chart")];
// One at a time, so that the page can be scrolled while the rest is drawn.
async function drawAll() {
  for (const chart of charts) {
    const first = !chart.data;
    await draw(chart);
    if (first) chart.on("plotly_click", (event) => goTo(event.points[0].customdata));
    await new Promise((next) => setTimeout(next));
  }
  document.documentElement.dataset.drawn = charts.length;
}

function goTo(place) {
  if (place) location.hash = `incident-${place}`;
}

for (const row of document.querySelectorAll("tr[data-goto]")) {
  row.addEventListener("click", () => (location.hash = row.dataset.goto));
}

for (const button of document.querySelectorAll(".sortable button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const column = head.cellIndex;
    const down = head.ariaSort === "ascending";
    for (const other of head.parentNode.cells) other.ariaSort = null;
    head.ariaSort = down ? "descending" : "ascending";
    const body = head.closest("table").tBodies[0];
    const key = (row) => Number(row.cells[column].dataset.v);
    body.append(...[...body.rows].sort((a, b) => (down ? key(b) - key(a) : key(a) - key(b)) || 0));
  });
}

// On paper: light, and as wide as the sheet.
function setPrinting(on) {
  document.documentElement.classList.toggle("printing", on);
  for (const chart of charts) draw(chart, on ? chart.clientWidth : undefined);
}
addEventListener("beforeprint", () => setPrinting(true));
addEventListener("afterprint", () => setPrinting(false));

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
