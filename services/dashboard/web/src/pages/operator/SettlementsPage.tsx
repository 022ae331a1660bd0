import { i18n } from '@lingui/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { POLL, usePermissions } from '@/api/workspace';
import { useSearchState } from '@/app/search';
import { count } from '@/format/money';
import { Button, Copy, DataTable, EmptyState, Facts, Filters, Money, Page, polling, Segments, SidePanel, Time, type Column } from '@/ui';
import css from './operator.module.css';
import { DeadLetterState, ReasonDialog, WorkspaceLink } from './parts';
import { deadLettersQuery, resolveDeadLetter, type DeadLetter } from './queries';

export default function SettlementsPage() {
  const [search, setSearch] = useSearchState((raw) => ({ all: raw.all === true, open: typeof raw.open === 'string' ? raw.open : '' }));
  const query = useInfiniteQuery({ ...deadLettersQuery(search.all), ...polling(POLL), placeholderData: keepPreviousData });
  const rows = query.data?.pages.flatMap((page) => page.deadLetters);
  const open = rows?.find((letter) => letter.name === search.open);
  return (
    <Page
      title={i18n.t({ id: 'operator.settlements.title', message: 'Failed settlements' })}
      subtitle={i18n.t({ id: 'operator.settlementsText', message: 'Usage that a router measured and the ledger refused to charge. Retry or write off each settlement.' })}
    >
      <Filters>
        <Segments
          label={i18n.t({ id: 'operator.show', message: 'Show' })}
          value={search.all ? 'all' : 'open'}
          options={[
            { value: 'open', label: i18n.t({ id: 'operator.deadOpen', message: 'Open' }) },
            { value: 'all', label: i18n.t({ id: 'operator.all', message: 'All' }) },
          ]}
          onChange={(value) => setSearch({ all: value === 'all' ? true : (undefined as never), open: '' })}
        />
      </Filters>
      <DataTable<DeadLetter>
        label={i18n.t({ id: 'operator.settlements.title', message: 'Failed settlements' })}
        what={i18n.t({ id: 'operator.settlementsWhat', message: 'the settlements' })}
        columns={columns()}
        rows={rows}
        rowKey={(letter) => letter.name}
        onOpen={(letter) => setSearch({ open: letter.name })}
        openKey={open?.name ?? null}
        error={query.error}
        retry={() => void query.refetch()}
        busy={query.isPlaceholderData}
        hasMore={query.hasNextPage}
        loadingMore={query.isFetchingNextPage}
        onMore={() => void query.fetchNextPage()}
        empty={<EmptyState title={i18n.t({ id: 'operator.noDead', message: 'No failed settlements' })}>{i18n.t({ id: 'operator.noDeadText', message: 'The ledger has accepted all settlements.' })}</EmptyState>}
      />
      <SidePanel opened={open !== undefined} onClose={() => setSearch({ open: '' })} title={i18n.t({ id: 'operator.settlement', message: 'Settlement' })}>
        {open && <LetterPanel letter={open} onDone={() => setSearch({ open: '' })} />}
      </SidePanel>
    </Page>
  );
}

function columns(): Column<DeadLetter>[] {
  return [
    { id: 'time', header: i18n.t({ id: 'operator.refusedAt', message: 'Refused' }), weight: 1.5, cell: (letter) => <Time at={letter.createTime} exact /> },
    { id: 'workspace', header: i18n.t({ id: 'operator.workspace.title', message: 'Workspace' }), weight: 1.1, wide: true, cell: (letter) => <WorkspaceLink name={letter.workspace} /> },
    { id: 'reason', header: i18n.t({ id: 'operator.whyRefused', message: 'Refusal reason' }), weight: 1.1, cell: (letter) => <code>{letter.reason}</code> },
    { id: 'outcome', header: i18n.t({ id: 'operator.outcome', message: 'Outcome' }), weight: 1.2, wide: true, cell: (letter) => letter.outcome },
    { id: 'tokens', header: i18n.t({ id: 'operator.tokens', message: 'Input, output tokens' }), weight: 1.1, align: 'end', wide: true, cell: (letter) => <span className="num">{`${count(letter.promptTokens)}, ${count(letter.completionTokens)}`}</span> },
    { id: 'engine', header: i18n.t({ id: 'operator.engine', message: 'Engine' }), weight: 0.9, wide: true, cell: (letter) => letter.engine || '—' },
    { id: 'state', header: i18n.t({ id: 'operator.state', message: 'Status' }), weight: 1, cell: (letter) => <DeadLetterState state={letter.state} /> },
  ];
}

function LetterPanel({ letter, onDone }: { letter: DeadLetter; onDone: () => void }) {
  const may = usePermissions(null);
  const [act, setAct] = useState<'retry' | 'writeOff' | null>(null);
  return (
    <>
      <Facts
        facts={[
          { label: i18n.t({ id: 'operator.state', message: 'Status' }), value: <DeadLetterState state={letter.state} /> },
          { label: i18n.t({ id: 'operator.workspace.title', message: 'Workspace' }), value: <WorkspaceLink name={letter.workspace} /> },
          { label: i18n.t({ id: 'operator.request', message: 'Request' }), value: <><code>{letter.request}</code> <Copy bare value={letter.request} label={i18n.t({ id: 'operator.copyId', message: 'Copy ID' })} /></> },
          { label: i18n.t({ id: 'operator.whyRefused', message: 'Refusal reason' }), value: <code>{letter.reason}</code> },
          { label: i18n.t({ id: 'operator.outcome', message: 'Outcome' }), value: letter.outcome },
          { label: i18n.t({ id: 'operator.tokens', message: 'Input, output tokens' }), value: `${count(letter.promptTokens)}, ${count(letter.completionTokens)}` },
          { label: i18n.t({ id: 'operator.engine', message: 'Engine' }), value: letter.engine || '—' },
          { label: i18n.t({ id: 'operator.refusedAt', message: 'Refused' }), value: <Time at={letter.createTime} exact /> },
          ...(letter.actor ? [{ label: i18n.t({ id: 'operator.decidedBy', message: 'Decided by' }), value: <>{letter.actor} · <Time at={letter.resolveTime} exact /> · {letter.note}</> }] : []),
          ...(letter.adjustment ? [{ label: i18n.t({ id: 'operator.deadAdjusted', message: 'Adjustment' }), value: <code>{letter.adjustment.split('/').pop()}</code> }] : []),
          ...(letter.chargedUsd ? [{ label: i18n.t({ id: 'operator.charged', message: 'Charged' }), value: <Money usd={letter.chargedUsd} style="exact" /> }] : []),
        ]}
      />
      {letter.state === 'DEAD_LETTER_STATE_OPEN' && (
        <div className={css.row}>
          {may('DeadLetterService/RetryDeadLetter') && <Button kind="primary" onClick={() => setAct('retry')}>{i18n.t({ id: 'operator.retry', message: 'Retry settlement' })}</Button>}
          {may('DeadLetterService/WriteOffDeadLetter') && <Button onClick={() => setAct('writeOff')}>{i18n.t({ id: 'operator.writeOff', message: 'Write off' })}</Button>}
        </div>
      )}
      <ReasonDialog
        opened={act === 'retry'}
        onClose={() => setAct(null)}
        title={i18n.t({ id: 'operator.retry', message: 'Retry settlement' })}
        verb={i18n.t({ id: 'operator.retry', message: 'Retry settlement' })}
        act={async (reason, requestId) => {
          await resolveDeadLetter(letter, true, requestId, reason);
          onDone();
        }}
      >
        <p>{i18n.t({ id: 'operator.retryText', message: 'Tollgate asks the ledger again to charge this request. If it only comes too late, an adjustment of its price waits for a second person. If the ledger refuses it for another reason, the settlement stays open.' })}</p>
      </ReasonDialog>
      <ReasonDialog
        opened={act === 'writeOff'}
        onClose={() => setAct(null)}
        danger
        title={i18n.t({ id: 'operator.writeOff', message: 'Write off' })}
        verb={i18n.t({ id: 'operator.writeOff', message: 'Write off' })}
        act={async (reason, requestId) => {
          await resolveDeadLetter(letter, false, requestId, reason);
          onDone();
        }}
      >
        <p>{i18n.t({ id: 'operator.writeOffText', message: 'No credit is moved, and the settlement cannot be retried. An entry of the workspace records who decided and why.' })}</p>
      </ReasonDialog>
    </>
  );
}
