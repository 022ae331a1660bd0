#include "services/inference_router/run/worker.h"

namespace tollgate::inference_router {

Worker::Worker(Loop& loop, Clock& clock, std::unique_ptr<MeteringClient> metering, Journal& journal,
               Outbox& outbox, Outbox& admissions, TableHolder& table, RouterMetrics& metrics,
               const WorkerOptions& options)
    : loop_(loop),
      metering_(std::move(metering)),
      table_(table),
      options_(options),
      http_(loop, options.http),
      settler_(loop, *metering_, journal, outbox, options.settler, &admissions),
      leases_(loop, *metering_, clock, admissions, metrics),
      host_{loop, clock, http_, *metering_, journal, settler_, metrics, options.run},
      counter_(loop, http_, clock, options_.decoders,
               [&metrics] { metrics.implausible_counts.Increment(); }) {
  host_.counter = &counter_;
  host_.leases = &leases_;
  host_.admissions = &admissions;
}

Worker::~Worker() {
  loop_.CancelTimer(timer_);
  loop_.CancelTimer(leases_timer_);
}

void Worker::Stop() {
  loop_.CancelTimer(timer_);
  loop_.CancelTimer(leases_timer_);
  timer_ = leases_timer_ = 0;
  settler_.Stop();
}

void Worker::Start() {
  ScheduleHeartbeat();
  ScheduleLeases();
}

void Worker::ScheduleLeases() {
  leases_timer_ = loop_.RunAfter(1'000, [this] {
    leases_.Tick();
    ScheduleLeases();
  });
}

void Worker::ScheduleHeartbeat() {
  timer_ = loop_.RunAfter(options_.heartbeat_ms, [this] {
    for (RequestRun* run : runs_) run->Heartbeat();
    ScheduleHeartbeat();
  });
}

Task<void> Worker::Serve(inference::v1::GenerateRequest request, std::shared_ptr<EventSink> sink) {
  RequestRun run(host_, table_.Get(), std::move(request), std::move(sink));
  runs_.insert(&run);
  ++running_;
  co_await run.Run();
  runs_.erase(&run);
  --running_;
}

void Worker::TerminateAll() {
  for (RequestRun* run : runs_) run->Terminate();
}

}  // namespace tollgate::inference_router
