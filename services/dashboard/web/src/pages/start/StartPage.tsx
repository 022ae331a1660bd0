import { Navigate } from '@tanstack/react-router';
import { usePerson } from '@/api/session';
import { startPath } from '@/app/places';

// Redirects to the last used workspace, else to the first one.
export default function StartPage() {
  const person = usePerson();
  return <Navigate to={startPath(person)} replace />;
}
