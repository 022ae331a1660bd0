// A toll barrier.
export function Logo({ size = 24 }: { size?: number }) {
  return (
    <svg viewBox="0 0 24 24" width={size} height={size} aria-hidden>
      <rect x="3" y="8" width="4" height="13" rx="1" fill="var(--accent)" />
      <rect x="2" y="20" width="20" height="2" rx="1" fill="var(--accent)" />
      <g transform="rotate(-24 5 9)">
        <rect x="4" y="7.5" width="18" height="3.4" rx="1.7" fill="#F59E0B" />
        <path d="M10 7.5h3l-1.6 3.4h-3zM16 7.5h3l-1.6 3.4h-3z" fill="#fff" />
      </g>
      <circle cx="5" cy="9" r="2.2" fill="var(--accent)" />
    </svg>
  );
}
