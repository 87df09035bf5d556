// Draws each table of the overview as a chart above it; without this the tables are read as they are.
"use strict";

const HEIGHT = 190;
const drawn = [];

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Labels, names and numbers of a table, a series a column. */
function read(table) {
  const names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows];
  const number = (cell) => (cell.textContent === "–" ? null : Number(cell.textContent));
  const columns = names.map((_, at) => rows.map((row) => number(row.cells[at + 1])));
  const kept = columns.map((column) => column.some(Boolean));
  return {
    days: rows.map((row) => row.cells[0].textContent),
    names: names.filter((_, at) => kept[at]),
    columns: columns.filter((_, at) => kept[at]),
  };
}

function draw(figure) {
  const details = figure.querySelector("details");
  const table = figure.querySelector("table");
  const { days, names, columns } = read(table);
  const first = table.tHead.rows[0].cells[0].textContent;
  const stacked = figure.dataset.chart === "stacked";
  const bars = stacked || figure.dataset.chart === "bars";
  const unit = figure.dataset.unit;
  const tops = stacked
    ? columns.map((_, at) => days.map((_, day) => columns.slice(0, at + 1).reduce((sum, one) => sum + (one[day] ?? 0), 0)))
    : columns;
  const order = names.map((_, at) => at);
  if (stacked) order.reverse(); // the whole first: each lower part is drawn over it
  const said = (value) => (value == null ? "–" : unit === "$" ? `$${value}` : `${value.toLocaleString()}${unit && ` ${unit}`}`);
  const series = order.map((at) => ({
    label: names[at],
    stroke: style(`--c${(at % 8) + 1}`),
    fill: bars ? style(`--c${(at % 8) + 1}`) : undefined,
    width: bars ? 0 : 2,
    paths: bars ? uPlot.paths.bars({ size: [0.75, 40] }) : undefined,
    points: { show: !bars && days.length < 40, size: 5 },
    value: (_, __, ___, day) => (day == null ? "" : said(columns[at][day])),
  }));
  const axis = { stroke: style("--faint"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  const plot = new uPlot(
    {
      width: figure.clientWidth - 32,
      height: HEIGHT,
      scales: {
        x: { time: false, range: [-0.6, days.length - 0.4] },
        y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
      },
      axes: [
        { ...axis, grid: { show: false }, space: 64, size: 30, values: (_, marks) => marks.map((mark) => (Number.isInteger(mark) ? (days[mark] ?? "") : "")) },
        { ...axis, size: 52, values: (_, marks) => marks.map((mark) => (unit === "$" ? `$${mark}` : mark.toLocaleString())) },
      ],
      series: [{ value: (_, __, ___, day) => (day == null ? "" : days[day]), label: first }, ...series],
      legend: { markers: { width: 0, fill: (plot, at) => plot.series[at].stroke(plot, at) } },
      cursor: { drag: { x: false, y: false }, y: false },
    },
    [days.map((_, day) => day), ...order.map((at) => tops[at])],
  );
  plot.root.setAttribute("aria-hidden", "true"); // the table says the same
  for (const one of plot.root.querySelectorAll("[tabindex]")) one.removeAttribute("tabindex");
  figure.insertBefore(plot.root, details);
  return plot;
}

function all() {
  for (const plot of drawn.splice(0)) plot.destroy();
  for (const figure of document.querySelectorAll(".chart:has(table)")) drawn.push(draw(figure));
}

for (const details of document.querySelectorAll(".chart details")) details.open = false;
all();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
let width = innerWidth;
addEventListener("resize", () => {
  if (width !== innerWidth) all();
  width = innerWidth;
});
