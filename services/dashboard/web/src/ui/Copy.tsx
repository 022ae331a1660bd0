import { i18n } from '@lingui/core';
import { ActionIcon, Button as MantineButton } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { IconCheck, IconCopy } from '@/icons';

// navigator.clipboard does not exist over plain http. The text field is next to the button, because a dialog traps the
// focus.
export async function copyText(text: string, near: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    field.className = 'hidden-text';
    field.setAttribute('aria-hidden', 'true');
    near.parentElement?.append(field);
    field.select();
    let done = false;
    try {
      done = document.execCommand('copy');
    } catch {
      done = false;
    }
    field.remove();
    near.focus();
    return done;
  }
}

interface CopyProps {
  value: string;
  label: string;
  bare?: boolean; // icon only
  // Called when copying failed, to select the text.
  onFailed?: () => void;
  onCopied?: () => void;
}

export function Copy({ value, label, bare, onFailed, onCopied }: CopyProps) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (state !== 'copied') return;
    const timer = setTimeout(() => setState('idle'), 2_000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    const done = button.current !== null && (await copyText(value, button.current));
    setState(done ? 'copied' : 'failed');
    if (done) onCopied?.();
    else onFailed?.();
  };
  const text = {
    idle: label,
    copied: i18n.t({ id: 'copy.done', message: 'Copied' }),
    failed: i18n.t({ id: 'copy.failed', message: 'Could not copy. Select the text and press Ctrl+C.' }),
  }[state];
  const Sign = state === 'copied' ? IconCheck : IconCopy;
  if (bare) {
    return (
      <ActionIcon ref={button} variant="subtle" size={24} aria-label={text} title={text} onClick={copy}>
        <Sign size={15} stroke={1.6} aria-hidden />
      </ActionIcon>
    );
  }
  return (
    <>
      <MantineButton ref={button} variant="default" size="sm" leftSection={<Sign size={16} stroke={1.6} aria-hidden />} onClick={copy}>
        {state === 'copied' ? text : label}
      </MantineButton>
      <span className={state === 'failed' ? undefined : 'hidden-text'} role="status">
        {state === 'idle' ? '' : text}
      </span>
    </>
  );
}
