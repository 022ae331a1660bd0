// Secrets, and code with a Copy button. A secret lives in the state of its dialog: never in a query's cache, the address
// or storage.
import { i18n } from '@lingui/core';
import { useId, useRef, useState, type KeyboardEvent } from 'react';
import { Copy } from './Copy';
import css from './Secret.module.css';

function select(element: HTMLElement | null): void {
  if (!element) return;
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = window.getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}

export function Secret({ value, label }: { value: string; label: string }) {
  const code = useRef<HTMLElement>(null);
  return (
    <div className={css.box}>
      <code ref={code} aria-label={label} translate="no">
        {value}
      </code>
      <Copy value={value} label={i18n.t({ id: 'action.copy', message: 'Copy' })} onFailed={() => select(code.current)} />
    </div>
  );
}

export function Code({ text, label }: { text: string; label: string }) {
  const code = useRef<HTMLPreElement>(null);
  return (
    <div className={css.code}>
      <pre ref={code} tabIndex={0} aria-label={label} translate="no">
        {text}
      </pre>
      <div className={css.copy}>
        <Copy value={text} label={i18n.t({ id: 'copy.block', message: 'Copy {label}', values: { label } })} bare onFailed={() => select(code.current)} />
      </div>
    </div>
  );
}

export interface CodeTab {
  name: string;
  text: string;
}

export function CodeTabs({ tabs, label }: { tabs: CodeTab[]; label: string }) {
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const buttons = useRef<(HTMLButtonElement | null)[]>([]);
  const tab = tabs[chosen] ?? tabs[0];
  if (!tab) return null;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = (chosen + step + tabs.length) % tabs.length;
    setChosen(next);
    buttons.current[next]?.focus();
  };
  return (
    <div className={css.code}>
      <div className={css.head} role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {tabs.map((one, index) => (
          <button
            key={one.name}
            ref={(element) => {
              buttons.current[index] = element;
            }}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={index === chosen ? 0 : -1}
            onClick={() => setChosen(index)}
          >
            {one.name}
          </button>
        ))}
      </div>
      <pre id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-tab-${chosen}`} tabIndex={0} translate="no">
        {tab.text}
      </pre>
      <div className={css.copy}>
        <Copy value={tab.text} label={i18n.t({ id: 'copy.block', message: 'Copy {label}', values: { label: tab.name } })} bare />
      </div>
    </div>
  );
}
