import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import { idOf, type Schema } from '@/api/types';
import { Button, Card, Confirm, ErrorState, RowSkeletons, StateChip, Time, useNow } from '@/ui';
import { supportSessionsQuery } from './queries';
import css from './settings.module.css';

type SupportSession = Schema<'SupportSession'>;

// Support sessions of operators: reason and end. The audit log has each of their calls.
export function Support({ workspace, mayEnd }: { workspace: string; mayEnd: boolean }) {
  const query = useQuery(supportSessionsQuery(workspace));
  const now = useNow().toISOString();
  const [ending, setEnding] = useState<SupportSession | null>(null);
  return (
    <Card title={i18n.t({ id: 'settings.support', message: 'Support sessions' })} subtitle={i18n.t({ id: 'settings.support.sub', message: 'Read-only access of operators to this workspace' })}>
      {query.data === undefined ? (
        query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'settings.support.what', message: 'the support sessions' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={2} />
      ) : query.data.supportSessions.length === 0 ? (
        <p className="quiet">{i18n.t({ id: 'settings.support.none', message: 'No operator has viewed this workspace.' })}</p>
      ) : (
        <ul className={css.list}>
          {query.data.supportSessions.map((one) => (
            <li key={one.name}>
              <div>
                {one.reason}
                <p className="quiet">
                  <Time at={one.createTime} exact /> · {one.actor}
                </p>
              </div>
              {(one.expireTime ?? '') > now ? (
                <>
                  <StateChip tone="warn">{i18n.t({ id: 'settings.support.open', message: 'Open' })}</StateChip>
                  {mayEnd && (
                    <Button small onClick={() => setEnding(one)}>
                      {i18n.t({ id: 'settings.support.end', message: 'End' })}
                    </Button>
                  )}
                </>
              ) : (
                <StateChip tone="quiet">{i18n.t({ id: 'settings.support.ended', message: 'Ended' })}</StateChip>
              )}
            </li>
          ))}
        </ul>
      )}
      <Confirm
        opened={ending !== null}
        onClose={() => setEnding(null)}
        title={i18n.t({ id: 'settings.support.endTitle', message: 'End support session' })}
        verb={i18n.t({ id: 'settings.support.end', message: 'End' })}
        act={async () => {
          if (ending) await unwrap(api.POST('/admin/v1/workspaces/{workspace}/supportSessions/{supportSession}:end', { params: { path: { workspace, supportSession: idOf(ending.name) } }, body: {} }));
          await queryClient.invalidateQueries({ queryKey: ['supportSessions', workspace] });
        }}
      >
        {i18n.t({ id: 'settings.support.endText', message: 'The operator loses access to this workspace immediately.' })}
      </Confirm>
    </Card>
  );
}
