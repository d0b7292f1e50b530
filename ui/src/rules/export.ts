// One decision as a file that stands alone: no script, nothing to be fetched. Pure.
import { factsText, remarksOf, tablesOf } from './decisions.ts';
import type { Row } from './rows.ts';

const escape = (text: string): string => text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);

const STYLE = 'body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1c2128;background:#fff}table{border-collapse:collapse;margin:.5rem 0}th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #d4d9df;font-variant-numeric:tabular-nums}.marked td{font-weight:600;background:#fdf3f2}.quiet{color:#59636e}div{overflow-x:auto}';

export function fileOf(row: Row, from: string): string {
  const parts = [`<h1>${escape(row.sentence)}</h1>`, `<p class="quiet">${escape(row.at)}${row.node === '' ? '' : `, node ${escape(row.node)}`}${row.owner === '' ? '' : `, of ${escape(row.owner)}`}</p>`];
  if (row.decision !== null) {
    for (const table of tablesOf(row.decision)) {
      parts.push(`<h2>${escape(table.title)}</h2>${!table.remark ? '' : `<p>${escape(table.remark)}</p>`}<div><table><tr>${table.headings.map((each) => `<th>${escape(each)}</th>`).join('')}</tr>`,
        ...table.rows.map((cells, place) => `<tr${place === table.marked ? ' class="marked"' : ''}>${cells.map((each) => `<td>${escape(each)}</td>`).join('')}</tr>`), '</table></div>');
    }
    const remarks = remarksOf(row.decision);
    if (remarks.length > 0) parts.push('<h2>Also</h2><ul>', ...remarks.map((each) => `<li>${escape(each)}</li>`), '</ul>');
    if (row.decision.cost.length > 0) parts.push(`<h2>What it cost</h2><p>${escape(factsText(row.decision.cost))}</p>`);
  }
  if (row.message !== '') parts.push(`<h2>Status</h2><p>${escape(row.message)}</p>`);
  if (row.decision !== null) parts.push(`<h2>As data</h2><pre>${escape(JSON.stringify(row.decision, null, 1))}</pre>`);
  return `<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><title>${escape(row.sentence)}</title><style>${STYLE}</style>\n${parts.join('\n')}\n<p class="quiet">${escape(from)}</p></html>\n`;
}

export const fileName = (row: Row): string => `${[row.what, row.ns, row.name, row.at.replace(/[:.]/g, '-')].filter((each) => each !== '').join('-').replace(/[^A-Za-z0-9_-]/g, '-')}.html`;
