// Adds to pages that are complete without it: news, keys, folding, the theme and copying.
(() => {
  'use strict';
  const doc = document, root = doc.documentElement, body = doc.body;
  const all = (what, from = doc) => [...from.querySelectorAll(what)];
  const one = (what) => doc.querySelector(what);
  root.classList.add('js');
  all('.needs-js').forEach((e) => { e.hidden = false; });
  const go = (href) => { if (href) location.href = href; };
  const follow = (what) => { const e = one(what); if (e) e.click(); };

  // The theme is kept in a cookie, so that the server knows it too.
  const themes = ['auto', 'light', 'dark'];
  const setTheme = (theme) => {
    doc.cookie = 'theme=' + theme + '; path=/; max-age=31536000; samesite=strict';
    if (theme === 'auto') delete root.dataset.theme; else root.dataset.theme = theme;
    all('[data-theme-name]').forEach((e) => { e.textContent = theme; });
  };
  const nextTheme = () => {
    const at = themes.indexOf(root.dataset.theme || 'auto');
    setTheme(themes[(at + 1) % themes.length]);
  };
  const themeForm = one('form[data-theme-form]');
  if (themeForm) themeForm.addEventListener('submit', (e) => { e.preventDefault(); nextTheme(); });

  const say = (text) => { const e = one('#said'); if (e) e.textContent = text; };
  const copy = (text) => {
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => say('Copied.'));
  };
  doc.addEventListener('click', (e) => {
    const button = e.target.closest && e.target.closest('[data-copy]');
    if (button) {
      const from = doc.getElementById(button.dataset.copy);
      copy(from ? from.textContent.replace(/^\$ /, '') : '');
    }
  });

  // News are gathered behind a button. Nothing moves by itself.
  const news = one('#news');
  let events = null, last = '', saidAt = 0;
  const listen = () => {
    if (!news || events || doc.hidden) return;
    const address = body.dataset.events + (last ? (body.dataset.events.includes('?') ? '&' : '?') + 'since=' + last : '');
    events = new EventSource(address);
    events.onmessage = (e) => {
      if (!last) last = e.lastEventId;
      const count = Number(e.data);
      if (!count) return;
      const text = count === 1 ? '1 new run' : count + ' new runs';
      news.textContent = text;
      news.hidden = false;
      if (Date.now() - saidAt > 10000) { saidAt = Date.now(); say(text); }
    };
  };
  const hush = () => { if (events) { events.close(); events = null; } };
  if (news && body.dataset.events) {
    news.addEventListener('click', () => location.reload());
    doc.addEventListener('visibilitychange', () => (doc.hidden ? hush() : listen()));
    addEventListener('pagehide', hush);
    listen();
  }

  // Keys. They can be switched off, and never work in fields.
  const off = () => { try { return localStorage.getItem('keys') === 'off'; } catch { return false; } };
  const keysBox = one('#keys');
  if (keysBox) {
    keysBox.checked = !off();
    keysBox.addEventListener('change', () => {
      try { localStorage.setItem('keys', keysBox.checked ? 'on' : 'off'); } catch { /* not kept */ }
    });
  }
  const rows = () => all('tbody tr').filter((row) => row.querySelector('a'));
  let at = -1;
  const move = (by) => {
    const list = rows();
    if (!list.length) return;
    at = Math.max(0, Math.min(list.length - 1, at + by));
    list.forEach((row, i) => row.classList.toggle('at', i === at));
    list[at].querySelector('a').focus();
  };
  const changes = () => all('[data-change], details.changed > summary');
  let change = -1;
  const jump = (by) => {
    const list = changes();
    if (!list.length) return;
    change = Math.max(0, Math.min(list.length - 1, change + by));
    const e = list[change], fold = e.closest('details');
    if (fold) fold.open = true;
    if (!e.hasAttribute('tabindex') && e.tagName !== 'SUMMARY') e.tabIndex = -1;
    e.focus();
    e.scrollIntoView({ block: 'center' });
  };
  const run = body.dataset.run;
  const mark = () => {
    try { sessionStorage.setItem('marked', run); say('Marked this run. C compares another run with it.'); } catch { /* not kept */ }
  };
  const compare = () => {
    let marked = '';
    try { marked = sessionStorage.getItem('marked') || ''; } catch { /* not kept */ }
    if (marked && marked !== run) go('/compare/' + marked + '/' + run); else follow('[data-key="C"]');
  };
  const places = { r: '/runs', x: '/x', c: '/changes', w: '/warnings', s: '/status' };
  let waiting = false;
  doc.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || off()) return;
    if (e.target.closest('input, select, textarea, [contenteditable]')) {
      if (e.key === 'Escape') e.target.blur();
      return;
    }
    const key = e.key;
    if (waiting) { waiting = false; if (places[key]) { e.preventDefault(); go(places[key]); } return; }
    const acts = {
      '/': () => { const field = one('#search'); if (field) field.focus(); },
      j: () => move(1), k: () => move(-1), n: () => jump(1), p: () => jump(-1),
      u: () => follow('[rel~="up"]'), '[': () => follow('[rel~="prev"]'), ']': () => follow('[rel~="next"]'),
      '.': () => {
        const folds = all('main details'), open = folds.some((fold) => !fold.open);
        folds.forEach((fold) => { fold.open = open; });
      },
      c: () => run && mark(), C: () => run && compare(), y: () => { copy(location.href); },
      g: () => { waiting = true; }, t: nextTheme, '?': () => go('/help'),
    };
    const act = acts[key];
    if (act) { e.preventDefault(); act(); return; }
    const link = /^[1-9a-z]$/i.test(key) && one('[data-key="' + key + '"]');
    if (link) { e.preventDefault(); link.click(); }
  });
})();
