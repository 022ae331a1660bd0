import { i18n } from '@lingui/core';
import { Drawer, Modal } from '@mantine/core';
import { useRef, useState, type ReactNode } from 'react';
import { asApiError } from '@/api/errors';
import { Button } from './controls';
import css from './Dialog.module.css';
import { TextField } from './fields';
import { Failure } from './states';

const close = () => ({ 'aria-label': i18n.t({ id: 'action.close', message: 'Close' }) });

interface DialogProps {
  opened: boolean;
  onClose: () => void;
  title: string;
  children: ReactNode;
  // Closes only by its own buttons: Escape, the close icon and clicks outside have no effect.
  locked?: boolean;
  wide?: boolean;
}

export function Dialog({ opened, onClose, title, children, locked, wide }: DialogProps) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={title}
      size={wide ? 680 : 480}
      padding="xl"
      centered
      lockScroll={false}
      withCloseButton={!locked}
      closeOnEscape={!locked}
      closeOnClickOutside={false}
      closeButtonProps={close()}
      classNames={{ title: css.title, content: css.content }}
      overlayProps={{ backgroundOpacity: 0.45 }}
      transitionProps={{ transition: 'fade', duration: 120 }}
    >
      <div className={css.body}>{children}</div>
    </Modal>
  );
}

// Details of a row, next to the list.
export function SidePanel({ opened, onClose, title, children }: Omit<DialogProps, 'locked' | 'wide'>) {
  return (
    <Drawer
      opened={opened}
      onClose={onClose}
      title={title}
      position="right"
      size={520}
      padding="xl"
      lockScroll={false}
      closeButtonProps={close()}
      classNames={{ title: css.title, content: css.panel }}
      overlayProps={{ backgroundOpacity: 0.2 }}
      transitionProps={{ transition: 'fade', duration: 120 }}
    >
      <div className={css.body}>{children}</div>
    </Drawer>
  );
}

export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={css.actions}>{children}</div>;
}

interface ConfirmProps {
  opened: boolean;
  onClose: () => void;
  // The button's text, with the same verb as the title: "Revoke key".
  title: string;
  verb: string;
  // The consequences, the affected object, its last use.
  children: ReactNode;
  danger?: boolean;
  // For acts that cannot be undone: the name to type.
  typed?: string;
  // On an ApiError the dialog stays open and shows the error.
  act: () => Promise<unknown>;
}

// A question before an act. For acts that cannot be undone, the focus is on Cancel. The button cannot be pressed twice.
export function Confirm({ opened, onClose, title, verb, children, danger, typed, act }: ConfirmProps) {
  return (
    <Dialog opened={opened} onClose={onClose} title={title}>
      {/* Mounted at each opening, so that no text or error is left over. */}
      {opened && (
        <ConfirmBody onClose={onClose} verb={verb} danger={danger} typed={typed} act={act}>
          {children}
        </ConfirmBody>
      )}
    </Dialog>
  );
}

function ConfirmBody({ onClose, verb, children, danger, typed, act }: Omit<ConfirmProps, 'opened' | 'title'>) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const running = useRef(false);
  const ready = typed === undefined || text === typed;
  const run = async () => {
    if (running.current || !ready) return;
    running.current = true;
    setBusy(true);
    setError(null);
    try {
      await act();
      onClose();
    } catch (caught) {
      setError(asApiError(caught));
    } finally {
      running.current = false;
      setBusy(false);
    }
  };
  return (
    <form
      className={css.body}
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      <div className={css.text}>{children}</div>
      {typed !== undefined && (
        <TextField label={i18n.t({ id: 'confirm.type', message: 'Type {typed} to confirm', values: { typed } })} value={text} onChange={setText} mono />
      )}
      {error != null && <Failure error={error} />}
      <DialogActions>
        <Button onClick={onClose} autoFocus={danger}>
          {i18n.t({ id: 'action.cancel', message: 'Cancel' })}
        </Button>
        <Button
          type="submit"
          kind={danger ? 'danger' : 'primary'}
          busy={busy}
          autoFocus={!danger}
          disabledReason={ready ? undefined : i18n.t({ id: 'confirm.typeFirst', message: 'Type the name first' })}
        >
          {verb}
        </Button>
      </DialogActions>
    </form>
  );
}
