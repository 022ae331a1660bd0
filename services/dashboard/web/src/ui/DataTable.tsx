// The table of all lists. More than 100 rows are virtualized. "Load more" follows the API's page token. Column widths come
// from weights, never from content. Keys: up/down or J/K move, Enter opens, / focuses the filter.
import { i18n } from '@lingui/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef, type CSSProperties, type KeyboardEvent, type ReactNode } from 'react';
import { Button, Link } from './controls';
import css from './DataTable.module.css';
import { ErrorState, RowSkeletons } from './states';

export interface Column<T> {
  id: string;
  header: string;
  cell: (row: T) => ReactNode;
  weight?: number; // share of the width; default 1
  align?: 'end';
  // Hidden on phones, which show at most three columns.
  wide?: boolean;
  headerHidden?: boolean; // for screen readers only: actions
  total?: ReactNode; // in the pinned last row
}

export interface DataTableProps<T> {
  label: string; // what the table lists
  title?: string; // shown above it
  columns: Column<T>[];
  rows: T[] | undefined; // undefined: not loaded yet
  rowKey: (row: T) => string;
  // The link of the first cell, or the panel that it opens.
  rowLink?: (row: T) => string;
  onOpen?: (row: T) => void;
  openKey?: string | null;
  newKey?: string | null; // the row to highlight once
  error?: unknown;
  retry?: () => void;
  busy?: boolean; // shows the old rows while new ones load
  empty: ReactNode;
  hasMore?: boolean;
  loadingMore?: boolean;
  onMore?: () => void;
  what: string; // for the error text: "the API keys"
}

const VIRTUAL_FROM = 100;
const ROW = 40;

function focusRow(body: HTMLElement | null, from: Element | null, step: number): void {
  if (!body) return;
  const links = Array.from(body.querySelectorAll<HTMLElement>('[data-row-link]'));
  const at = links.findIndex((link) => link.closest('tr') === from?.closest('tr'));
  links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus();
}

function inField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable]') !== null;
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { columns, rows, rowKey, busy, error, hasMore } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const virtual = (rows?.length ?? 0) > VIRTUAL_FROM;
  const virtualizer = useVirtualizer({
    count: virtual ? rows!.length : 0,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  if (rows === undefined) {
    return (
      <div className={css.frame}>
        {error ? <ErrorState error={error} what={props.what} retry={props.retry} /> : <RowSkeletons />}
      </div>
    );
  }
  if (rows.length === 0 && !busy) return <div className={css.frame}>{props.empty}</div>;
  const weights = columns.reduce((sum, column) => sum + (column.weight ?? 1), 0);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || inField(event.target)) return;
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    focusRow(body.current, document.activeElement, step);
  };
  const items = virtual ? virtualizer.getVirtualItems() : null;
  const before = items?.[0]?.start ?? 0;
  const after = items ? virtualizer.getTotalSize() - (items.at(-1)?.end ?? 0) : 0;
  const space = (height: number): CSSProperties => ({ height });
  const shown = items ? items.map((item) => ({ row: rows[item.index]!, index: item.index })) : rows.map((row, index) => ({ row, index }));
  return (
    <div className={`${css.frame} ${busy ? css.old : ''}`} aria-busy={busy}>
      {busy && <div className={css.bar} />}
      {props.title && <h2 className={css.head}>{props.title}</h2>}
      <div ref={scroll} className={virtual ? css.scroll : css.plain}>
        <table className={css.table} aria-label={props.label} aria-rowcount={hasMore ? -1 : rows.length + 1} onKeyDown={onKeyDown}>
          <colgroup>
            {columns.map((column) => (
              <col key={column.id} className={column.wide ? css.wide : undefined} style={{ width: `${((column.weight ?? 1) / weights) * 100}%` }} />
            ))}
          </colgroup>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.id} scope="col" className={cellClass(column)}>
                  {column.headerHidden ? <span className="hidden-text">{column.header}</span> : column.header}
                </th>
              ))}
            </tr>
          </thead>
          <tbody ref={body}>
            {before > 0 && <tr aria-hidden style={space(before)} />}
            {shown.map(({ row, index }) => (
              <Row key={rowKey(row)} row={row} index={index} {...props} />
            ))}
            {after > 0 && <tr aria-hidden style={space(after)} />}
          </tbody>
          {columns.some((column) => column.total !== undefined) && (
            <tfoot>
              <tr>
                {columns.map((column) => (
                  <td key={column.id} className={cellClass(column)}>
                    {column.total}
                  </td>
                ))}
              </tr>
            </tfoot>
          )}
        </table>
      </div>
      {hasMore && (
        <div className={css.more}>
          <Button small busy={props.loadingMore} onClick={props.onMore}>
            {i18n.t({ id: 'table.more', message: 'Load more' })}
          </Button>
          <span className="num">{i18n.t({ id: 'table.shown', message: '{count, plural, one {# row shown} other {# rows shown}}', values: { count: rows.length } })}</span>
        </div>
      )}
    </div>
  );
}

function cellClass<T>(column: Column<T>): string | undefined {
  return [column.align === 'end' ? css.end : '', column.wide ? css.wide : '', column.headerHidden ? css.tight : ''].filter(Boolean).join(' ') || undefined;
}

// The whole row is clickable; only its first cell takes the focus.
function Row<T>({ row, index, columns, rowKey, rowLink, onOpen, openKey, newKey }: DataTableProps<T> & { row: T; index: number }) {
  const link = useRef<HTMLElement>(null);
  const id = rowKey(row);
  const first = (content: ReactNode) => {
    if (rowLink) {
      return (
        <Link to={rowLink(row)} data-row-link ref={link as never}>
          {content}
        </Link>
      );
    }
    if (!onOpen) return content;
    return (
      <button type="button" className={css.open} data-row-link ref={link as never} onClick={() => onOpen(row)} aria-expanded={openKey === id}>
        {content}
      </button>
    );
  };
  const openable = rowLink !== undefined || onOpen !== undefined;
  return (
    <tr
      className={css.row}
      aria-rowindex={index + 2}
      data-link={openable}
      data-open={openKey === id}
      data-new={newKey === id}
      onClick={(event) => {
        if (!openable || window.getSelection()?.toString() || (event.target as HTMLElement).closest('a, button, input, [role="menu"]')) return;
        link.current?.click();
      }}
    >
      {columns.map((column, at) => (
        <td key={column.id} className={cellClass(column)}>
          {at === 0 ? first(column.cell(row)) : column.cell(row)}
        </td>
      ))}
    </tr>
  );
}
