import { i18n } from '@lingui/core';
import { notifications } from '@mantine/notifications';
import { TextButton } from './states';

// Confirms an action, with Undo where possible. Not for secrets or for errors that need a reaction.
export function toast(text: string, undo?: () => void): void {
  const id = notifications.show({
    message: undo ? (
      <>
        {text}{' '}
        <TextButton
          onClick={() => {
            notifications.hide(id);
            undo();
          }}
        >
          {i18n.t({ id: 'action.undo', message: 'Undo' })}
        </TextButton>
      </>
    ) : (
      text
    ),
    autoClose: 8_000,
    role: 'status',
    withBorder: true,
    closeButtonProps: { 'aria-label': i18n.t({ id: 'action.close', message: 'Close' }) },
  });
}
