import { Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';

export function Tip({ text, children }: { text: ReactNode; children: ReactNode }) {
  return (
    <Tooltip label={text} multiline maw={320} withArrow events={{ hover: true, focus: true, touch: true }}>
      {children as React.JSX.Element}
    </Tooltip>
  );
}

export default Tip;
