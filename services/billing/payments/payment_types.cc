#include "services/billing/payments/payment_types.h"

namespace tollgate::billing::payments {

std::string_view Name(PaymentState state) {
  switch (state) {
    case PaymentState::kRequested:
      return "requested";
    case PaymentState::kSubmitted:
      return "submitted";
    case PaymentState::kAwaitingTransfer:
      return "awaiting_transfer";
    case PaymentState::kSucceeded:
      return "succeeded";
    case PaymentState::kDeclined:
      return "declined";
    case PaymentState::kCancelled:
      return "cancelled";
    case PaymentState::kUnknown:
      return "unknown";
  }
  return "";
}

std::string_view Name(ReloadState state) {
  switch (state) {
    case ReloadState::kIdle:
      return "idle";
    case ReloadState::kRequested:
      return "requested";
    case ReloadState::kSubmitted:
      return "submitted";
    case ReloadState::kUnknown:
      return "unknown";
    case ReloadState::kBackoff:
      return "backoff";
    case ReloadState::kPaused:
      return "paused";
  }
  return "";
}

std::string_view Name(DisputeView::State state) {
  switch (state) {
    case DisputeView::State::kInquiry:
      return "inquiry";
    case DisputeView::State::kOpen:
      return "open";
    case DisputeView::State::kLost:
      return "lost";
    case DisputeView::State::kWon:
      return "won";
  }
  return "";
}

std::string_view Name(RefundState state) {
  switch (state) {
    case RefundState::kRequested:
      return "requested";
    case RefundState::kTaken:
      return "taken";
    case RefundState::kSubmitted:
      return "submitted";
    case RefundState::kRefused:
      return "refused";
    case RefundState::kFailed:
      return "failed";
    case RefundState::kReturned:
      return "returned";
  }
  return "";
}

}  // namespace tollgate::billing::payments
