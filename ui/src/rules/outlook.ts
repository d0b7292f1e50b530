// The state of an object and what it waits for, as `spillway explain` prints it: the first remark is the answer. Pure.
import { headingOf, valueText, type Table } from './decisions.ts';
import { sentenceFor, type Facts, type Remark } from './remarks.ts';

export interface Subject { kind: string; ns: string; name: string }
export interface Row { name: string; state: string; facts: Facts }
/** `name`: what its rows are, "pods". `total`: all of them; the first ROWS_MAX are rows. */
export interface Part { name: string; rows: Row[]; total: number }
/** bad: it does not work; waits: something is still to come; good: there is nothing to do. */
export type State = 'bad' | 'waits' | 'good';
/** `lead`: between the subject and the answer, " is not rolled out yet". */
export interface Outlook { subject: Subject; lead?: string; state: State; remarks: Remark[]; parts: Part[] }

export const ROWS_MAX = 10;

export const partOf = (name: string, rows: Row[]): Part => ({ name, rows: rows.slice(0, ROWS_MAX), total: rows.length });
export const subjectOf = (kind: string, object: any): Subject => ({ kind, ns: String(object?.metadata?.namespace ?? ''), name: String(object?.metadata?.name ?? '') });

/** "pod shop/web": the first letter of the kind is small. */
export function subjectText({ kind, ns, name }: Subject): string {
  if (kind === 'Cluster') return 'cluster';
  return `${kind.charAt(0).toLowerCase()}${kind.slice(1)} ${ns === '' ? '' : `${ns}/`}${name}`;
}

export const sentenceOf = ({ code, facts }: Remark): string => sentenceFor(code, facts);
export const answerOf = ({ remarks }: Outlook): string => (remarks[0] === undefined ? '' : sentenceOf(remarks[0]));
export const headlineOf = (outlook: Outlook): string => `${subjectText(outlook.subject)}${outlook.lead ?? ''}${outlook.remarks.length === 0 ? '' : `: ${answerOf(outlook)}`}`;
export const othersOf = ({ remarks }: Outlook): string[] => remarks.slice(1).map(sentenceOf);

const sentenceCase = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase();

const STATE_COLUMNS: Record<string, string> = { ports: 'Port', slices: 'Family' };

function columnOf(name: string): string {
  if (name === 'ports') return 'Name';
  return sentenceCase(headingOf(name.endsWith('s') ? name.slice(0, -1) : name));
}

/** The columns are those of the rows with most facts, in their order. */
function tableOf(part: Part): Table {
  const fullest = [...part.rows].sort((a, b) => Object.keys(b.facts).length - Object.keys(a.facts).length);
  const names = [...new Set(fullest.flatMap((row) => Object.keys(row.facts)))];
  const cell = (row: Row, name: string): string => { const value = row.facts[name]; return value === undefined ? '-' : valueText({ name, value }) || '-'; };
  const more = part.total - part.rows.length;
  return {
    title: sentenceCase(part.name), headings: [columnOf(part.name), STATE_COLUMNS[part.name] ?? 'State', ...names.map((name) => sentenceCase(headingOf(name)))], marked: -1,
    rows: part.rows.map((row) => [row.name || '-', row.state || '-', ...names.map((name) => cell(row, name))]), remark: more > 0 ? `and ${more} more` : '',
  };
}

export const outlookTables = ({ parts }: Outlook): Table[] => parts.map(tableOf);
