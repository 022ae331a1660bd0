import { money, type MoneyStyle } from '@/format/money';

// An amount from the API. The exact value is in the markup, in the tooltip and in the copied text.
export function Money({ usd, style = 'total', plus }: { usd: string | null | undefined; style?: MoneyStyle; plus?: boolean }) {
  const text = money(usd, style, plus);
  if (usd == null || usd === '') return <span className="num">{text}</span>;
  return (
    <data
      className="num"
      value={usd}
      title={`${usd} USD`}
      onCopy={(event) => {
        event.clipboardData.setData('text/plain', usd);
        event.preventDefault();
      }}
    >
      {text}
    </data>
  );
}
