import { money, type MoneyStyle } from '@/format/money';

// An amount of the API. The exact one is in the markup, on hover, and when the cell is copied.
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
