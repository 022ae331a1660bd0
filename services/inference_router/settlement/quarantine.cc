#include "services/inference_router/settlement/quarantine.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/observability/log.h"
#include "services/inference_router/settlement/file_header.h"
#include "services/inference_router/settlement/settlement_metrics.h"

namespace tollgate::inference_router {

bool Quarantine(const std::string& path, const QuarantinedPiece& piece) {
  const std::string line = "{\"at_us\":" + std::to_string(SystemClock::Get().WallUs()) +
                           ",\"reason\":\"" + std::string(piece.reason) +
                           "\",\"offset\":" + std::to_string(piece.offset) + ",\"request_id\":\"" +
                           HexEncode(piece.request_id) +
                           "\",\"bytes\":" + std::to_string(piece.data.size()) + ",\"data\":\"" +
                           HexEncode(piece.data) + "\"}\n";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const bool written =
      file >= 0 && WriteFully(file, line) && ::fsync(file) == 0 && FlushFolderOf(path);
  const int failed = errno;
  if (file >= 0) ::close(file);
  if (!written) {
    log::Error("cannot move a settlement to the quarantine; it stays in the outbox",
               {{"file", path}, {"reason", piece.reason}, {"errno", std::strerror(failed)}});
    return false;
  }
  SettlementMetrics::Get().CountQuarantined(piece.reason);
  log::Error("a part of the outbox was moved to the quarantine and is not charged; see its line",
             {{"file", path},
              {"reason", piece.reason},
              {"request_id", HexEncode(piece.request_id)},
              {"offset", piece.offset},
              {"bytes", piece.data.size()}});
  return true;
}

}  // namespace tollgate::inference_router
