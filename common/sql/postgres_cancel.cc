#include "common/sql/postgres_cancel.h"

#include <libpq-fe.h>

#include <atomic>
#include <thread>

namespace tollgate::sql {
namespace {
// With this many cancels in progress, further ones are skipped.
constexpr int kMaxCancels = 8;
}  // namespace

// PQcancel connects and waits for the server without a limit, so it runs on a thread of its own.
void CancelAside(pg_conn* connection) {
  static std::atomic<int> running = 0;
  PGcancel* const cancel = PQgetCancel(connection);
  if (cancel == nullptr) return;
  if (running.fetch_add(1) >= kMaxCancels) {
    --running;
    return PQfreeCancel(cancel);
  }
  std::thread([cancel] {
    char error[256];
    PQcancel(cancel, error, sizeof error);
    PQfreeCancel(cancel);
    --running;
  }).detach();
}

}  // namespace tollgate::sql
