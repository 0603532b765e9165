'use strict';
// The page of +stage=view. The address after # is the state of the page; every view draws it from the server's data.
// Texts of runs and samples enter the page as text only, never as HTML.

const POLL = 2000, PAGE = 50, COLOURS = 9;
const ANSWERS = -2, BEFORE = -1, AFTER = 2 ** 40;
const VIEWS = {runs: 'Runs', curves: 'Curves', samples: 'Samples', tasks: 'Before and after'};
const MAIN = ['reward/mean', 'success/mean', 'held_out/pass_at_1', 'loss', 'held_out/loss', 'entropy', 'kl', 'kl/old',
  'grad_norm/after', 'tokens/completion_mean', 'tokens/truncated', 'groups/mixed', 'learning_rate', 'time/step'];
const FILTERS = ['low_step', 'high_step', 'task', 'family', 'role', 'outcome', 'bucket', 'mode', 'low', 'high', 'text'];

let state = {}, runs = [], generation = '', view = null, drawing = 0, held = false;

// Elements and texts.

const $ = id => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== 'list' && name !== 'value') node[name] = value;
    else if (value !== undefined && value !== false) node.setAttribute(name, value);
  }
  if ('value' in attributes) node.value = attributes.value; // Last: the type of an input decides what it may be.
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return node;
}

function svg(tag, attributes) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

const words = name => String(name ?? '').replaceAll('_', ' ');
const number = value => value === null || value === undefined ? '' : Math.abs(value) >= 1e5 || (value && Math.abs(value) < 1e-3)
  ? value.toExponential(2) : String(+value.toPrecision(4));
const percent = value => (100 * value).toFixed(1) + '%';
const placed = place => ({[ANSWERS]: 'answers', [BEFORE]: 'before', [AFTER]: 'after'})[place] ?? String(place);
const chip = (kind, text) => el('span', {className: 'verdict ' + kind}, words(text));

function rated(rate, metric) {
  if (!rate) return '';
  const show = metric.startsWith('bits') ? value => value.toFixed(3) : percent;
  return [el('b', {}, show(rate.value)), ' ', el('small', {}, `${show(rate.low)} to ${show(rate.high)}`)];
}

function ago(created) {
  const seconds = (Date.now() - Date.parse(created)) / 1000;
  if (!created || isNaN(seconds)) return '';
  const [unit, size] = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]].find(([, size]) => seconds >= size) ?? ['s', 1];
  return `${Math.max(0, Math.floor(seconds / size))} ${unit} ago`;
}

function lasted(seconds) {
  if (seconds === null || seconds === undefined) return '';
  if (seconds < 60) return `${+seconds.toPrecision(3)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

// State and data.

function address(changes) {
  const values = Object.entries({...state, ...changes}).filter(([, value]) => value !== '' && value !== undefined);
  return '#' + new URLSearchParams(values);
}

const go = changes => { location.hash = address(changes); };
const replace = changes => { history.replaceState(null, '', address(changes)); read(); };
const link = (changes, ...text) => el('a', {href: address(changes)}, ...text);

async function ask(path, values = {}) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const one of [value].flat()) if (one !== '' && one !== undefined) given.append(name, one);
  }
  const answer = await fetch(`/${path}?${given}`);
  const text = await answer.text();
  if (answer.status === 403) throw new Error('The server was restarted: open the address that it prints.');
  if (!answer.ok) throw new Error(text.startsWith('{') ? JSON.parse(text).error : text);
  return JSON.parse(text);
}

const chosen = () => (state.run ?? '').split('|').filter(Boolean).map(path => runs.find(run => run.path === path)).filter(Boolean);
const ids = () => chosen().map(run => run.id).join(',');

function read() {
  state = {v: 'runs', ...Object.fromEntries(new URLSearchParams(location.hash.slice(1)))};
  if (!(state.v in VIEWS)) state.v = 'runs';
}

function render() {
  read();
  if (view?.name !== state.v) {
    view = {name: state.v, ...MAKERS[state.v]()};
    $('view').className = '';
    $('view').replaceChildren(...view.parts);
    scrollTo(0, 0);
  }
  const some = chosen().length;
  $('nav').replaceChildren(...Object.entries(VIEWS).map(([name, title]) => name === 'runs' || some
    ? el('a', {href: '#' + new URLSearchParams({v: name, ...(state.run && {run: state.run})}), className: name === state.v ? 'here' : ''}, title)
    : el('span', {className: 'none', title: 'select a run first'}, title)));
  document.title = [VIEWS[state.v], ...chosen().map(run => run.path)].slice(0, 3).join(': ');
  update();
}

async function update() {
  const mine = ++drawing, shown = view;
  try {
    const draw = await shown.load();
    if (mine === drawing && shown === view) draw();
  } catch (fault) {
    if (mine === drawing) shown.parts.at(-1).replaceChildren(el('p', {className: 'reason'}, fault.message));
  }
}

async function poll() {
  try {
    const now = await ask('runs', {since: generation});
    const first = generation === '';
    generation = now.generation;
    const [done, total] = now.progress ?? [0, 0], live = runs.filter(run => run.status === 'running').length;
    if (now.runs) {
      runs = now.runs;
      if (first) render(); else if (!held) update();
    }
    $('state').textContent = now.problem || (now.progress ? `reading files: ${done} of ${total}` : `${runs.length} ${runs.length === 1 ? 'run' : 'runs'}${live ? `, ${live} running` : ''}`);
    $('state').title = now.root;
  } catch (fault) {
    $('state').textContent = fault instanceof TypeError ? 'The server has ended.' : fault.message;
  }
  setTimeout(poll, POLL);
}

// Controls: each is bound to a name of the state.

function input(name, label, attributes = {}) {
  let timer;
  const change = event => {
    clearTimeout(timer);
    const value = attributes.type === 'checkbox' ? (event.target.checked ? '1' : '') : event.target.value;
    timer = setTimeout(() => { replace({[name]: value, page: '', at: ''}); update(); }, attributes.type === 'checkbox' ? 0 : 250);
  };
  const node = el('input', {name, value: state[name] ?? '', checked: state[name] === '1', oninput: change, ...attributes});
  return el('label', {className: attributes.type ?? ''}, el('span', {}, label), node);
}

function select(name, label, values) {
  const change = event => { replace({[name]: event.target.value, page: '', at: ''}); update(); };
  const options = Object.entries(values).map(([value, text]) => el('option', {value, selected: value === (state[name] ?? '')}, text));
  return el('label', {}, el('span', {}, label), el('select', {name, onchange: change}, options));
}

function heads(columns, sort, down) {
  return el('tr', {}, columns.map(([name, title, kind]) => el('th', {
    className: kind ?? '', 'aria-sort': name === sort ? (down ? 'descending' : 'ascending') : undefined,
    onclick: () => { if (name) go({sort: name, down: name === sort && !down ? '1' : '', page: '', at: ''}); },
  }, title)));
}

// Runs.

function runsView() {
  const table = el('table', {className: 'sortable runs'}), actions = el('p', {className: 'actions'}), bottom = el('div', {className: 'wide'}, table);
  const columns = [['', ''], ['path', 'run'], ['status', 'status'], ['stage', 'stage'], ['model', 'model', 'extra'], ['data', 'data', 'extra'],
    ['steps', 'steps'], ['before', 'before'], ['after', 'after'], ['samples', 'samples', 'extra'], ['tags', 'tags', 'extra'], ['created', 'age', 'extra']];
  const metrics = () => [...new Set(runs.flatMap(run => Object.keys(run.rates)))];
  const metric = el('div', {className: 'controls'}, input('q', 'filter', {type: 'search', placeholder: 'name, stage, model, status, tag'}));
  const load = async () => () => {
    const by = state.metric ?? metrics()[0] ?? 'pass_at_1', wanted = (state.q ?? '').toLowerCase().split(/\s+/);
    if (metrics().length > 1 && metric.children.length < 2) {
      metric.append(select('metric', 'success by', Object.fromEntries(metrics().map(name => [name, words(name)]))));
    }
    const value = (run, name) => name === 'before' ? run.rates[by]?.[0]?.value : name === 'after' ? run.rates[by]?.[1]?.value
      : name === 'tags' ? run.tags.join(' ') : run[name];
    const sort = state.sort ?? 'created', down = state.sort ? state.down === '1' : true;
    const shown = runs.filter(run => wanted.every(word => JSON.stringify([run.path, run.status, run.stage, run.model, run.data, run.tags]).toLowerCase().includes(word)));
    shown.sort((a, b) => {
      const [x, y] = [value(a, sort), value(b, sort)];
      if ((x ?? '') === '' || (y ?? '') === '') return ((x ?? '') === '') - ((y ?? '') === '');
      return (down ? -1 : 1) * (typeof x === 'number' ? x - y : String(x).localeCompare(String(y), 'en', {numeric: true}));
    });
    const picked = new Set(chosen().map(run => run.path));
    const pick = (path, on) => { on ? picked.add(path) : picked.delete(path); replace({run: [...picked].join('|')}); render(); };
    const row = run => el('tr', {className: picked.has(run.path) ? 'picked' : ''},
      el('td', {}, el('input', {type: 'checkbox', checked: picked.has(run.path), ariaLabel: 'select ' + run.path, onchange: event => pick(run.path, event.target.checked)})),
      el('th', {}, el('a', {href: '#' + new URLSearchParams({v: run.steps || !run.samples ? 'curves' : 'samples', run: run.path})}, run.path),
        run.problems.map(text => el('small', {className: 'down'}, text))),
      el('td', {}, el('span', {className: 'status ' + run.status, title: run.reason}, run.status)), el('td', {}, run.stage),
      el('td', {className: 'extra'}, run.model), el('td', {className: 'extra'}, run.data),
      el('td', {}, run.steps ? run.steps.toLocaleString('en') : '', run.status === 'running' && run.planned ? el('small', {}, ` of ${run.planned.toLocaleString('en')}`) : ''),
      el('td', {'data-label': 'before'}, rated(run.rates[by]?.[0], by)), el('td', {'data-label': 'after'}, rated(run.rates[by]?.[1], by)),
      el('td', {className: 'extra'}, run.samples ? run.samples.toLocaleString('en') : ''),
      el('td', {className: 'extra'}, run.tags.map(tag => el('span', {className: 'tag'}, tag))),
      el('td', {className: 'extra', title: run.created}, ago(run.created)));
    table.replaceChildren(el('tbody', {}, heads(columns, sort, down), shown.map(row)));
    actions.replaceChildren(...(picked.size ? [`${picked.size} selected: `, link({v: 'curves', sort: '', down: '', q: ''}, 'curves'), ' ',
      link({v: 'samples', sort: '', down: '', q: ''}, 'samples'), ' ', el('button', {onclick: () => { replace({run: ''}); render(); }}, 'clear')]
      : [shown.length === runs.length ? 'Select runs to compare them.' : `${shown.length} of ${runs.length} runs`]));
    if (!runs.length) actions.textContent = 'No runs below this folder yet.';
  };
  return {parts: [metric, actions, bottom], load};
}

// Curves.

function smooth(values, weight) {
  let mean = 0, norm = 0;
  return values.map(value => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    norm = weight * norm + 1 - weight;
    return mean / norm;
  });
}

function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(k => k * power).find(size => size >= raw) ?? raw;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(+(k * step).toPrecision(12));
  return found;
}

/** Lines of a metric: {label, colour, run, step, x, y, raw, low, high}; one for each run, or one for each arm with a band. */
function lines(name, data, arms) {
  const weight = Math.min(0.995, Number(state.smooth ?? 0)), found = [];
  for (const {label, colour, runs: own} of arms) {
    const parts = own.map(run => ({run, columns: data[run.id]})).filter(({columns}) => columns?.[name]);
    if (!parts.length) continue;
    const rows = new Map();
    for (const {columns} of parts) columns.step.forEach((step, k) => {
      if (columns[name][k] === null) return;
      const row = rows.get(step) ?? rows.set(step, {seconds: [], values: []}).get(step);
      row.seconds.push(columns.seconds[k]);
      row.values.push(columns[name][k]);
    });
    const steps = [...rows.keys()].sort((a, b) => a - b), mean = values => values.reduce((a, b) => a + b, 0) / values.length;
    const raw = steps.map(step => mean(rows.get(step).values));
    const x = steps.map(step => state.axis === 'time' ? mean(rows.get(step).seconds) / 3600 : step);
    const band = own.length > 1 && {low: smooth(steps.map(step => Math.min(...rows.get(step).values)), weight),
      high: smooth(steps.map(step => Math.max(...rows.get(step).values)), weight)};
    found.push({label, colour, run: parts[0].run, step: steps, x, raw, y: smooth(raw, weight), band, smoothed: weight > 0});
  }
  return found;
}

function chart(name, drawn) {
  const log = state.log === '1', usable = value => value !== null && (!log || value > 0), scale = value => log ? Math.log10(value) : value;
  const all = drawn.flatMap(line => [...line.y, ...(line.smoothed ? line.raw : []), ...(line.band ? [...line.band.low, ...line.band.high] : [])]).filter(usable).map(scale);
  const xs = drawn.flatMap(line => line.x);
  let [low, high] = [Math.min(...all), Math.max(...all)];
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const pad = (high - low || Math.abs(high) || 1) * 0.06;
  if (!log && low >= 0 && low < (high - low) * 0.5) low = 0; else low -= pad;
  high += pad;
  const X = value => 100 * (value - left) / (right - left || 1), Y = value => 100 - 100 * (scale(value) - low) / (high - low);
  const picture = svg('svg', {viewBox: '0 0 100 100', preserveAspectRatio: 'none'});
  const plot = el('div', {className: 'plot', tabIndex: -1}, picture);
  const path = (line, values) => values.reduce((text, value, k) => text + (usable(value) ? `${text && usable(values[k - 1] ?? null) ? 'L' : 'M'}${X(line.x[k]).toFixed(2)} ${Y(value).toFixed(2)}` : ''), '');
  for (const tick of ticks(low, high, 4)) {
    picture.append(svg('path', {class: 'grid', d: `M0 ${100 - 100 * (tick - low) / (high - low)}H100`}));
    const label = el('span', {className: 'y'}, number(log ? 10 ** tick : tick));
    label.style.bottom = 100 * (tick - low) / (high - low) + '%';
    plot.append(label);
  }
  for (const tick of ticks(left, right || 1, 5)) {
    const label = el('span', {className: 'x'}, number(tick));
    label.style.left = X(tick) + '%';
    if (X(tick) <= 100) plot.append(label);
  }
  plot.append(el('span', {className: 'counted'}, state.axis === 'time' ? 'hours' : 'step'));
  for (const line of drawn) {
    if (line.band) {
      const back = line.band.low.map((value, k) => `L${X(line.x[k]).toFixed(2)} ${Y(value).toFixed(2)}`).reverse().join('');
      if (!log) picture.append(svg('path', {class: `band c${line.colour}`, d: path(line, line.band.high) + back + 'Z'}));
    }
    if (line.smoothed) picture.append(svg('path', {class: `line raw c${line.colour}`, d: path(line, line.raw)}));
    const shape = path(line, line.y);
    picture.append(svg('path', {class: `${line.x.length === 1 ? 'points' : 'line'} c${line.colour}`, d: line.x.length === 1 ? shape + 'h.01' : shape}));
  }
  const last = drawn.length === 1 ? number(drawn[0].y.at(-1)) : '';
  pointer(plot, drawn, left, right);
  return el('figure', {}, el('figcaption', {}, name, el('b', {}, last)), plot);
}

/** The readout under the pointer; a drag zooms, a click opens the samples of the step. */
function pointer(plot, drawn, left, right) {
  const hair = el('i', {className: 'hair'}), out = el('output'), area = el('i', {className: 'area'});
  plot.append(area, hair, out);
  const nearest = (line, x) => line.x.reduce((best, value, k) => Math.abs(value - x) < Math.abs(line.x[best] - x) ? k : best, 0);
  const at = event => {
    const box = plot.getBoundingClientRect();
    return left + (right - left) * Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };
  let begin = null;
  plot.addEventListener('pointermove', event => {
    const x = at(event), k = nearest(drawn[0], x), share = (drawn[0].x[k] - left) / (right - left || 1);
    out.textContent = [`step ${drawn[0].step[k]}`, ...drawn.map(line => `${drawn.length > 1 ? line.label + '  ' : ''}${number(line.y[nearest(line, x)])}`)].join('\n');
    out.style.cssText = `display:block;${share > .5 ? 'right' : 'left'}:${100 * Math.min(share, 1 - share) + 1}%`;
    if (share > .5) out.style.right = 101 - 100 * share + '%';
    hair.style.cssText = `display:block;left:${100 * share}%`;
    if (begin !== null) {
      const [from, to] = [Math.min(begin, x), Math.max(begin, x)].map(value => 100 * (value - left) / (right - left || 1));
      area.style.cssText = `display:block;left:${from}%;width:${to - from}%`;
    }
  });
  plot.addEventListener('pointerleave', () => { begin = null; for (const part of [hair, out, area]) part.style.display = 'none'; });
  plot.addEventListener('pointerdown', event => { begin = at(event); });
  plot.addEventListener('pointerup', event => {
    if (begin === null) return;
    const end = at(event), [low, high] = [Math.min(begin, end), Math.max(begin, end)];
    begin = null;
    const line = drawn[0], [from, to] = [low, high].map(x => line.step[nearest(line, x)]);
    if (high - low > (right - left) * 0.03) go({from, to});
    else if (right > left || line.step.length === 1) go({v: 'samples', run: line.run.path, low_step: to, high_step: to, from: '', to: ''});
  });
  plot.addEventListener('dblclick', () => go({from: '', to: ''}));
}

function curvesView() {
  const head = el('div'), charts = el('div', {className: 'charts big'}), names = el('datalist', {id: 'names'}), note = el('p', {className: 'note'});
  const controls = el('div', {className: 'controls'}, input('m', 'metrics', {type: 'search', placeholder: 'main ones; a word, or all', list: 'names'}), names,
    input('smooth', 'smoothing', {type: 'range', min: 0, max: 0.98, step: 0.02, value: state.smooth ?? 0}), select('axis', 'x axis', {'': 'step', time: 'time'}),
    input('log', 'log scale', {type: 'checkbox'}), input('apart', 'each seed', {type: 'checkbox'}), el('button', {onclick: () => go({from: '', to: ''})}, 'reset zoom'));
  let known = [];
  const wanted = () => {
    const text = (state.m ?? '').toLowerCase();
    if (text === 'all') return known;
    if (text) return known.filter(name => text.split(/[\s,]+/).every(word => name.toLowerCase().includes(word)));
    const main = MAIN.flatMap(name => known.filter(one => one === name || one.endsWith('/' + name) && !MAIN.includes(one))).slice(0, 24);
    return main.length ? main : known.slice(0, 12);
  };
  const load = async () => {
    const own = chosen(), range = {run: ids(), low: state.from, high: state.to};
    if (!own.length) return () => charts.replaceChildren(el('p', {className: 'none'}, 'No run is selected.'));
    known = (await ask('metrics', {run: ids(), low: 1, high: 0})).names;
    const data = (await ask('metrics', {...range, name: wanted()})).runs;
    return () => {
      const groups = new Map();
      for (const run of own) {
        const key = state.apart === '1' ? run.path : run.arm;
        groups.set(key, [...(groups.get(key) ?? []), run]);
      }
      const arms = [...groups.values()].map((members, k) => ({runs: members, colour: k % COLOURS + 1,
        label: members.length > 1 ? `${members[0].path} and ${members.length - 1} more of its seeds` : members[0].path}));
      const drawn = wanted().map(name => [name, lines(name, data, arms)]).filter(([, found]) => found.some(line => line.x.length));
      head.replaceChildren(own.length === 1 ? facts(own[0]) : el('ul', {className: 'legend'}, arms.map(arm => el('li', {},
        el('i', {className: 'c' + arm.colour}), el('a', {href: '#' + new URLSearchParams({v: 'curves', run: arm.runs.map(run => run.path).join('|')})}, arm.label)))));
      names.replaceChildren(...known.map(name => el('option', {value: name})));
      note.textContent = [drawn.length ? 'Drag to zoom, double-click to reset. A click on a point opens the samples of its step.' : '',
        arms.some(arm => arm.runs.length > 1) ? 'Lines are means over seeds; bands reach from the smallest to the largest seed.' : '',
        state.from || state.to ? `Steps ${state.from} to ${state.to}.` : ''].filter(Boolean).join(' ');
      charts.replaceChildren(...(drawn.length ? drawn.map(([name, found]) => chart(name, found.filter(line => line.x.length)))
        : [el('p', {className: 'none'}, known.length ? 'No metric has this word.' : 'No metrics yet.')]));
    };
  };
  return {parts: [head, controls, note, charts], load};
}

function facts(run) {
  const rates = Object.entries(run.rates).map(([name, [before, after]]) => [words(name), [before && percent(before.value), after && percent(after.value)].filter(Boolean).join(' → ')]);
  const shown = {stage: run.stage, model: run.model, data: run.data, seed: run.seed, steps: run.steps ? `${run.steps}${run.planned ? ` of ${run.planned}` : ''}` : '',
    duration: lasted(run.seconds), started: run.created.slice(0, 16).replace('T', ' '), samples: run.samples, ...Object.fromEntries(rates.slice(0, 4))};
  return el('div', {}, el('h1', {}, run.path.split('/').at(-1), el('span', {className: 'status ' + run.status}, run.status),
    run.pages.map(name => el('a', {className: 'report', href: `/report?run=${run.id}&page=${name}`, target: '_blank'}, name.split('.')[0]))),
    el('p', {className: 'reason'}, [run.reason, run.diagnosis && `Diagnosis: ${run.diagnosis}.`, ...run.problems].filter(Boolean).join('\n')),
    el('dl', {}, Object.entries(shown).filter(([, value]) => value !== '' && value !== null && value !== 0)
      .map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, String(value))))));
}

// Samples.

function filters() {
  return {run: ids(), ...Object.fromEntries(FILTERS.map(name => [name, state[name]]))};
}

function samplesView() {
  const controls = el('div', {className: 'controls'}), count = el('p', {className: 'actions count'}), table = el('table', {className: 'sortable rows'});
  const list = el('div', {className: 'list'}, el('div', {className: 'wide'}, table), el('p', {className: 'actions pages'})), one = el('div', {className: 'one'});
  const parts = [controls, count, el('div', {className: 'split'}, list, one)];
  let rows = [], total = 0, opened = '', listed = '';
  const fill = choices => {
    const of = kind => ({'': 'all', ...Object.fromEntries(Object.entries(choices[kind]).map(([name, times]) => [name, `${words(name)} (${times.toLocaleString('en')})`]))});
    const optional = ['role', 'mode', 'bucket', 'family'].filter(kind => Object.keys(choices[kind]).length);
    controls.replaceChildren(input('text', 'search', {type: 'search', placeholder: 'words in prompt, answer or log'}), select('outcome', 'verdict', of('outcome')),
      ...optional.map(kind => select(kind, kind, of(kind))), input('task', 'task', {type: 'search'}),
      el('label', {}, el('span', {}, 'steps'), el('span', {className: 'pair'}, input('low_step', '', {type: 'number', ariaLabel: 'first step'}), input('high_step', '', {type: 'number', ariaLabel: 'last step'}))),
      el('label', {}, el('span', {}, 'reward'), el('span', {className: 'pair'}, input('low', '', {type: 'number', step: 'any', ariaLabel: 'lowest reward'}), input('high', '', {type: 'number', step: 'any', ariaLabel: 'highest reward'}))),
      el('button', {onclick: () => { go(Object.fromEntries([...FILTERS, 'page', 'at', 'sort', 'down'].map(name => [name, '']))); listed = ''; }}, 'clear'));
  };
  const key = row => `${row.run}.${row.place}.${row.row}`;
  const open = row => { replace({at: key(row)}); update(); };
  const load = async () => {
    const page = Number(state.page ?? 0), sort = state.sort ?? 'place', down = state.down === '1';
    if (!chosen().length) return () => count.replaceChildren('No run is selected.');
    const found = await ask('samples', {...filters(), sort, down: down ? 1 : 0, offset: page * PAGE, most: PAGE});
    ({rows, count: total} = found);
    const at = state.at ?? '', [run, place, row] = at.split('.');
    const sample = at && at !== opened ? await ask('sample', {run, place, row}) : null;
    return () => {
      const several = chosen().length > 1, shape = Object.keys(found.choices.family).join() + state.run;
      if (!controls.contains(document.activeElement) && listed !== shape + JSON.stringify(found.choices)) { fill(found.choices); listed = shape + JSON.stringify(found.choices); }
      const any = name => rows.some(row => row[name] !== null);
      const columns = [several && ['', 'run', 'extra'], ['place', 'step'], ['task', 'task'], any('family') && ['family', 'family', 'extra'], any('role') && ['role', 'role'], any('mode') && ['mode', 'mode', 'extra'],
        ['bucket', 'verdict'], any('reward') && ['reward', 'reward'], any('advantage') && ['advantage', 'advantage', 'extra'], ['tokens', 'tokens', 'extra']].filter(Boolean);
      const cell = (row, name) => name === '' ? runs.find(run => run.id === row.run)?.path : name === 'place' ? placed(row.place)
        : name === 'bucket' ? verdict(row) : name === 'task' ? el('a', {href: address({at: key(row)})}, row.task)
        : typeof row[name] === 'number' ? number(row[name]) : words(row[name]);
      table.replaceChildren(el('tbody', {}, heads(columns, sort, down), rows.map(row => el('tr', {className: key(row) === at ? 'picked' : '', onclick: () => open(row)},
        columns.map(([name, , kind]) => el('td', {className: kind ?? ''}, cell(row, name) ?? ''))))));
      const exported = form => el('a', {href: `/export?${new URLSearchParams([...Object.entries(filters()).filter(([, value]) => value), ['form', form]])}`, download: ''}, form === 'csv' ? 'CSV' : 'JSON Lines');
      count.replaceChildren(`${total.toLocaleString('en')} samples. `, 'Export: ', exported('jsonl'), ' ', exported('csv'));
      list.lastChild.replaceChildren(...(total > PAGE ? [el('button', {disabled: page === 0, onclick: () => go({page: page - 1 || '', at: ''})}, 'previous'),
        ` ${(page * PAGE + 1).toLocaleString('en')} to ${Math.min(total, (page + 1) * PAGE).toLocaleString('en')} `,
        el('button', {disabled: (page + 1) * PAGE >= total, onclick: () => go({page: page + 1, at: ''})}, 'next')] : []));
      $('view').classList.toggle('opened', Boolean(at));
      if (!at) one.replaceChildren();
      if (sample) { one.replaceChildren(sampleCard(sample, Number(run), Number(place), step, () => { replace({at: ''}); update(); })); one.scrollTop = 0; }
      opened = at;
      table.querySelector('.picked')?.scrollIntoView({block: 'nearest'});
    };
  };
  const step = by => {
    const k = rows.findIndex(row => key(row) === state.at), page = Number(state.page ?? 0);
    if (rows[k + by]) open(rows[k + by]);
    else if (k < 0 && rows.length) open(rows[0]);
    else if (by > 0 && (page + 1) * PAGE < total) turn(page + 1, 0);
    else if (by < 0 && page > 0) turn(page - 1, PAGE - 1);
  };
  const turn = async (page, k) => {
    replace({page: page || '', at: ''});
    await update();
    if (rows[k]) open(rows[k]);
  };
  return {parts, load, step, close: () => { replace({at: ''}); update(); }};
}

const block = (text, kind = '') => text && text.trim() ? el('pre', {className: kind}, text) : el('p', {className: 'none'}, '(empty)');

function sampleCard(sample, run, place, step, close) {
  const about = sample.about ?? {}, held = place === BEFORE || place === AFTER, path = runs.find(one => one.id === run)?.path;
  const facts = [place === ANSWERS ? '' : held ? `${placed(place)} training` : `step ${place}`, sample.mode, roleOf(sample),
    sample.group !== undefined && `group ${sample.group}`, `sample ${sample.sample}`, `${sample.tokens} tokens`, sample.truncated && 'truncated',
    sample.total ? `${sample.passed} of ${sample.total} tests` : '', words(sample.fate), sample.waited ? `${sample.waited} steps old` : '',
    sample.rule && `rule ${sample.rule}`, sample.attempts > 1 && `attempt ${sample.attempt} of ${sample.attempts}`,
    typeof sample.logprob === 'number' && `log-probability ${sample.logprob.toFixed(2)}`];
  const terms = values => Object.entries(values ?? {}).map(([name, value]) => el('span', {className: 'term'}, `${words(name)} ${number(value)}`));
  const paid = sample.reward === undefined ? '' : el('p', {className: 'paid'}, 'reward ', el('b', {}, sample.reward === null ? 'none' : number(sample.reward)),
    terms(sample.terms), ' advantage ', el('b', {}, sample.advantage === null ? 'none' : number(sample.advantage)));
  const stages = about.stages ?? sample.stages ?? {};
  return el('article', {className: 'sample'},
    el('div', {className: 'actions'}, el('button', {onclick: () => step(-1), title: 'k'}, 'previous'), el('button', {onclick: () => step(1), title: 'j'}, 'next'),
      held && link({v: 'tasks', run: path, task: sample.task, at: '', page: '', sort: '', down: ''}, 'before and after'), el('button', {className: 'close', onclick: close, title: 'Escape'}, 'close')),
    el('h3', {}, words(sample.family), ' ', el('small', {}, sample.task), ' ', verdict(sample)),
    el('p', {className: 'note'}, facts.filter(Boolean).join(', ')), paid, sample.measures ? el('p', {className: 'paid'}, terms(sample.measures)) : '',
    sample.matrix ? matrix(sample.matrix) : '',
    sample.turns.length ? conversation(sample) : [sample.prompt ? [el('h4', {}, 'prompt'), block(sample.prompt)] : '',
      Object.entries(stages).slice(0, -1).map(([name, text]) => [el('h4', {}, words(name), sample.critiques?.[name] ? el('small', {}, ` tester: ${sample.critiques[name]}`) : ''), block(text)]),
      el('h4', {}, 'answer'), sample.thoughts ? el('details', {}, el('summary', {}, `thoughts, ${sample.thoughts.length.toLocaleString('en')} characters`), block(sample.thoughts)) : '', block(sample.answer),
      typeof about.tests === 'string' && about.tests ? [el('h4', {}, 'tests of the tester'), block(about.tests)] : ''],
    sample.token_logprobs?.length ? tokens(sample.token_logprobs) : '',
    sample.log ? [el('h4', {}, 'log of the verifier'), block(sample.log, 'log')] : '',
    Object.keys(about).length ? el('details', {}, el('summary', {}, 'facts of the environment'), block(JSON.stringify(about, null, 1))) : '');
}

/** Tokens on a ground that grows with their surprise; the least likely ones first in words. */
function tokens(pieces) {
  const nats = -pieces.reduce((sum, [, value]) => sum + value, 0), shown = text => JSON.stringify(text).slice(1, -1);
  const least = [...pieces].sort((a, b) => a[1] - b[1]).slice(0, 5).map(([text, value]) => [' ', el('code', {}, shown(text)), ` ${value.toFixed(2)}`]);
  return el('details', {}, el('summary', {}, `log-probabilities of the tokens, sum ${(-nats).toFixed(2)}, mean ${(-nats / pieces.length).toFixed(3)}`),
    el('p', {className: 'note'}, 'Least likely:', least),
    el('pre', {className: 'tokens'}, pieces.map(([text, value]) => el('span', {title: `${shown(text)}: ${value}`, style: `--surprise:${Math.min(-value / 5, 1).toFixed(2)}`}, text))));
}

const verdict = row => chip(row.outcome ?? '', row.outcome === 'failed' && row.bucket ? row.bucket : row.outcome ?? 'not judged');
const roleOf = row => words([row.about?.role, row.about?.stage, row.about?.critique && `critique of ${row.about.critique}`].filter(Boolean).join(': '));

/** The turns of an episode as messages. Of a prompt that continues the last turn, only the new part is shown. */
function conversation(sample) {
  let before = '';
  return el('div', {className: 'turns'}, sample.turns.map((turn, k) => {
    const fresh = before && turn.prompt.startsWith(before) ? turn.prompt.slice(before.length).trim() : turn.prompt, own = turn.place === Number((state.at ?? '').split('.')[2]);
    before = turn.prompt + turn.completion;
    const asked = fresh ? k && fresh === turn.prompt ? el('details', {}, el('summary', {}, 'prompt'), block(fresh)) : el('pre', {className: 'asked'}, fresh) : '';
    return el('div', {className: 'turn' + (own ? ' own' : '')}, asked, el('h4', {}, roleOf(turn) || `turn ${k + 1}`, ' ', verdict(turn), ' ',
      el('small', {}, [`${turn.tokens} tokens`, turn.reward !== null && turn.reward !== undefined && `reward ${number(turn.reward)}`, turn.advantage !== null && turn.advantage !== undefined && `advantage ${number(turn.advantage)}`].filter(Boolean).join(', '))),
    block(turn.completion), !own && turn.log ? el('details', {}, el('summary', {}, 'log'), block(turn.log, 'log')) : '');
  }));
}

/** Programs of an episode against the tests that were written for it. */
function matrix({programs, tests}) {
  const mark = (test, k) => !test.valid || k >= (test.ran ?? programs.length) ? '' : test.catches.includes(k) ? el('b', {className: 'down'}, 'caught') : 'passes';
  return el('details', {open: true}, el('summary', {}, `${programs.length} programs and ${tests.length} tests`), el('div', {className: 'wide marks'}, el('table', {}, el('tbody', {},
    el('tr', {}, ['test', 'set', '', ...programs.map((_, k) => `program ${k + 1}`)].map(text => el('th', {}, text))),
    tests.map(test => el('tr', {}, el('td', {}, el('code', {}, test.text)), el('td', {}, String(test.set + 1)), el('td', {}, test.valid ? chip('passed', 'valid') : chip('failed', 'invalid')),
      programs.map((_, k) => el('td', {}, mark(test, k))))),
    el('tr', {}, el('th', {}, 'hidden tests'), el('td'), el('td'), programs.map(program => el('td', {}, verdict({outcome: program.outcome}))))))),
  el('details', {}, el('summary', {}, 'programs'), programs.map((program, k) => [el('h4', {}, `program ${k + 1}`), block(program.program ?? '')])));
}

// Before and after.

function tasksView() {
  const controls = el('div', {className: 'controls'}, select('change', 'tasks', {'': 'all', up: 'improved', down: 'worse', same: 'unchanged'}), input('q', 'filter', {type: 'search', placeholder: 'task or family'}));
  const table = el('table', {className: 'sortable rows'}), list = el('div', {className: 'list'}, el('div', {className: 'wide tall'}, table)), one = el('div', {className: 'one'}), count = el('p', {className: 'actions count'});
  const parts = [controls, count, el('div', {className: 'split'}, list, one)];
  let shown = [], opened = '';
  const rate = side => side ? side[0] / side[1] : undefined, change = row => row.before && row.after ? rate(row.after) - rate(row.before) : undefined;
  const load = async () => {
    const run = chosen()[0];
    if (!run) return () => count.replaceChildren('No run is selected.');
    const rows = await ask('tasks', {run: run.id}), task = state.task ?? '';
    const sides = task && task + run.id !== opened ? await ask('tasks', {run: run.id, task}) : null;
    return () => {
      const kinds = {up: by => by > 0, down: by => by < 0, same: by => by === 0}, kind = kinds[state.change] ?? (() => true);
      shown = rows.filter(row => kind(change(row)) && `${row.task} ${row.family}`.includes(state.q ?? ''));
      const fraction = side => side ? `${side[0]} of ${side[1]}` : '';
      table.replaceChildren(el('tbody', {}, el('tr', {}, ['task', 'family', 'before', 'after', 'change'].map((name, k) => el('th', {className: k === 1 ? 'extra' : ''}, name))), shown.map(row =>
        el('tr', {className: row.task === task ? 'picked' : '', onclick: () => { replace({task: row.task}); update(); }},
          el('td', {}, el('a', {href: address({task: row.task})}, row.task)), el('td', {className: 'extra'}, words(row.family)), el('td', {}, fraction(row.before)), el('td', {}, fraction(row.after)),
          el('td', {className: change(row) > 0 ? 'up' : change(row) < 0 ? 'down' : ''}, change(row) === undefined ? '' : `${change(row) > 0 ? '+' : ''}${(100 * change(row)).toFixed(0)} points`)))));
      count.textContent = rows.length ? `${shown.length} of ${rows.length} tasks. Counts are correct samples.` : 'This run has no evaluation before or after.';
      $('view').classList.toggle('opened', Boolean(task));
      if (!task) one.replaceChildren();
      if (sides) { one.replaceChildren(sidesCard(task, sides)); opened = task + run.id; }
      if (!task) opened = '';
      table.querySelector('.picked')?.scrollIntoView({block: 'nearest'});
    };
  };
  const step = by => {
    const k = shown.findIndex(row => row.task === state.task), row = shown[k < 0 ? 0 : k + by];
    if (row) { replace({task: row.task}); update(); }
  };
  return {parts, load, step, close: () => { replace({task: ''}); update(); }};
}

function sidesCard(task, sides) {
  const first = [...sides.before, ...sides.after][0];
  const side = (name, rows) => el('div', {}, el('h4', {}, name + ' training'), rows.length ? rows.map(row => el('div', {className: 'answer'},
    el('p', {}, verdict(row), ' ', el('small', {}, `${row.mode}, sample ${row.sample}, ${row.tokens} tokens`)),
    row.thoughts ? el('details', {}, el('summary', {}, 'thoughts'), block(row.thoughts)) : '', block(row.answer), row.log ? block(row.log, 'log') : '')) : el('p', {className: 'none'}, 'not measured'));
  return el('article', {className: 'sample sides'}, el('div', {className: 'actions'}, el('button', {onclick: () => view.step(-1), title: 'k'}, 'previous'), el('button', {onclick: () => view.step(1), title: 'j'}, 'next'),
    el('button', {className: 'close', onclick: () => view.close(), title: 'Escape'}, 'close')),
    el('h3', {}, words(first?.family), ' ', el('small', {}, task)), el('details', {open: true}, el('summary', {}, 'prompt'), block(first?.prompt)),
    el('div', {className: 'answers'}, Object.entries(sides).map(([name, rows]) => side(name, rows))));
}

const MAKERS = {runs: runsView, curves: curvesView, samples: samplesView, tasks: tasksView};

addEventListener('hashchange', render);
// A drag over a chart ends before new data replace the chart.
addEventListener('pointerdown', () => { held = true; });
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => { held = false; });
addEventListener('keydown', event => {
  if (event.target.matches('input, select, textarea') || event.ctrlKey || event.metaKey || event.altKey) return;
  const by = {j: 1, ArrowDown: 1, ArrowRight: 1, k: -1, ArrowUp: -1, ArrowLeft: -1}[event.key];
  if (by && view?.step) { event.preventDefault(); view.step(by); }
  if (event.key === 'Escape') view?.close?.();
});
read();
poll();
