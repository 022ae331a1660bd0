import { Navigate } from '@tanstack/react-router';
import { paths } from '@/app/paths';
import { lastWorkspace } from '@/app/places';

// The target of billing.payments.success_url: redirects from the payment provider to the payments of the last workspace.
export default function PaidPage() {
  const workspace = lastWorkspace();
  return <Navigate to={workspace ? paths.billing(workspace) : '/'} replace />;
}
