// A catalog of one model, "ns/m", whose pool has the engines "a" and "b".
#pragma once

#include <string>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// max_concurrency: limit of each engine; 0: no limit.
inline catalog::v1::Snapshot TwoEngines(int64_t max_concurrency = 0) {
  catalog::v1::Snapshot snapshot;
  snapshot.set_version(1);
  auto* pool = snapshot.add_pools();
  pool->set_name("p");
  for (const char* id : {"a", "b"}) {
    auto* engine = pool->add_engines();
    engine->set_id(id);
    engine->set_base_url(std::string("http://127.0.0.1:800") + (id[0] == 'a' ? "1" : "2"));
    engine->set_max_concurrency(max_concurrency);
  }
  auto* model = snapshot.add_models();
  model->set_id("ns/m");
  model->set_pool("p");
  model->set_serving(true);
  return snapshot;
}

}  // namespace tollgate::inference_router
