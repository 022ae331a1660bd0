// tollgate.admin.v1.AlertService for the alerts of this process.
#pragma once

#include <memory>

#include "services/billing/alerts/alerts.h"

namespace grpc {
class Service;
}

namespace tollgate::billing {

// alerts must outlive it.
std::unique_ptr<grpc::Service> MakeAlertRpc(alerts::Alerts& alerts);

}  // namespace tollgate::billing
