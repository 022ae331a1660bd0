import { i18n } from '@lingui/core';
import type { ErrorComponentProps } from '@tanstack/react-router';
import { asApiError } from '@/api/errors';
import { Button, LinkButton } from '@/ui/controls';
import { Page } from '@/ui/Page';
import { Card, EmptyState, ErrorState } from '@/ui/states';

export function NotFound() {
  return (
    <Page title={i18n.t({ id: 'notFound.title', message: 'Page not found' })}>
      <Card flush>
        <EmptyState
          title={location.pathname}
          action={
            <LinkButton to="/" kind="primary">
              {i18n.t({ id: 'notFound.home', message: 'Go to the home page' })}
            </LinkButton>
          }
        >
          {i18n.t({ id: 'notFound.text', message: 'The link may be incomplete, or the page belongs to a workspace that you are not a member of.' })}
        </EmptyState>
      </Card>
    </Page>
  );
}

// Shown for errors thrown while rendering, and for chunks that a new version has replaced.
export function PageError({ error, reset }: ErrorComponentProps) {
  const fromApi = asApiError(error).reason !== 'UNKNOWN';
  return (
    <Page title={i18n.t({ id: 'pageError.title', message: 'Could not show this page' })}>
      <Card flush>
        {fromApi ? (
          <ErrorState error={error} what={i18n.t({ id: 'pageError.what', message: 'the page' })} retry={reset} />
        ) : (
          <EmptyState
            title={i18n.t({ id: 'pageError.bug', message: 'Something went wrong' })}
            action={<Button onClick={() => location.reload()}>{i18n.t({ id: 'pageError.reload', message: 'Reload page' })}</Button>}
          >
            <code>{error instanceof Error ? error.message : String(error)}</code>
          </EmptyState>
        )}
      </Card>
    </Page>
  );
}
