// The readout under the pointer: the nearest step of a chart and its numbers, from the chart's own data.
for (const plot of document.querySelectorAll('.plot')) {
  const data = JSON.parse(plot.dataset.chart), hair = plot.querySelector('.hair'), out = plot.querySelector('output');
  const words = v => v === null ? '-' : data.percent ? (100 * v).toFixed(1) + '%' : String(v);
  const show = event => {
    const box = plot.getBoundingClientRect(), at = (event.clientX - box.left) / box.width;
    let i = 0;
    data.at.forEach((place, k) => { if (Math.abs(place - at) < Math.abs(data.at[i] - at)) i = k; });
    const names = Object.keys(data.series);
    const lines = names.map(name => (names.length > 1 ? name + '  ' : '') + words(data.series[name][i]));
    out.textContent = [data.counted + ' ' + data.x[i], ...lines].join('\n');
    hair.style.left = 100 * data.at[i] + '%';
    const side = data.at[i] > .5 ? 'right:' + (101 - 100 * data.at[i]) : 'left:' + (1 + 100 * data.at[i]);
    out.style.cssText = 'display:block;' + side + '%';
    hair.style.display = 'block';
  };
  const hide = () => { hair.style.display = out.style.display = 'none'; };
  plot.addEventListener('pointermove', show);
  plot.addEventListener('pointerdown', show);
  plot.addEventListener('pointerleave', hide);
}
// A click on a head sorts its table by that column, a second one the other way; what is unknown stays last.
for (const table of document.querySelectorAll('table.sortable')) {
  const [top, ...rows] = table.rows;
  [...top.cells].forEach((head, k) => head.addEventListener('click', () => {
    const down = head.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
    const value = row => row.cells[k].dataset.value ?? row.cells[k].textContent;
    const known = rows.filter(row => value(row) !== ''), rest = rows.filter(row => value(row) === '');
    const numbers = known.every(row => !isNaN(value(row)));
    const order = (a, b) => numbers ? value(a) - value(b) : value(a).localeCompare(value(b), 'en');
    known.sort((a, b) => down * order(a, b));
    for (const other of top.cells) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', down > 0 ? 'ascending' : 'descending');
    table.tBodies[0].append(...known, ...rest);
  }));
}
// A link to a section opens it.
const unfold = () => {
  const section = document.getElementById(location.hash.slice(1)), folded = section?.querySelector(':scope>details');
  if (folded) { folded.open = true; section.scrollIntoView(); }
};
addEventListener('hashchange', unfold);
unfold();
